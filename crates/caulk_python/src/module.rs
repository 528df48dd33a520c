//! One parsed file, and what can be asked of it.

use caulk_core::{Fix, Problem};
use ruff_python_ast::PySourceType;
use ruff_python_parser::parse_unchecked_source;
use ruff_text_size::Ranged;

use crate::collect::{self, collect};
use crate::depth;
use crate::facts::{self, Facts};
use crate::fixes;
use crate::index::Index;
use crate::query;
use crate::resolve::{Meaning, Resolver};
use crate::sites::{Call, Creation, Decorated, GrowSite, Loop, Owner, Statement};
use crate::text::Source;

/// Problems that are told one by one.
const MAX_PROBLEMS: usize = 20;

/// A Python file, indexed.
#[derive(Debug)]
pub struct Module {
    path: String,
    problems: Vec<Problem>,
    pub(crate) source: Source,
    pub(crate) index: Index,
    pub(crate) resolver: Resolver,
    /// What every operation's path may stand for.
    pub(crate) meanings: Vec<Vec<Meaning>>,
}

impl Module {
    /// Parses and indexes. `path` goes into sites and edits as it is.
    pub fn parse(path: &str, text: &str) -> Self {
        let mut problems = Vec::new();
        let (readable, parsed) = match depth::parse(text, PySourceType::Python) {
            Ok(parsed) => (text, parsed),
            Err(why) => {
                problems.push(Problem::of_file(path, why.to_string()));
                ("", parse_unchecked_source("", PySourceType::Python))
            }
        };
        let source = Source::new(readable.to_owned());
        problems.extend(parsed.errors().iter().take(MAX_PROBLEMS).map(|error| source.problem(path, error)));
        let tree = parsed.into_syntax();
        let mut index = collect(&source, &tree.body, tree.range());
        // The tree is dropped recursively: a deep one needs stack.
        stacker::maybe_grow(
            collect::RED_ZONE + index.depth * 1024,
            collect::STACK + index.depth * 1024,
            || {
                drop(tree);
            },
        );
        let resolver = Resolver::new(&index);
        let bound_methods = resolver.bound_methods(&index);
        index.ops.extend(bound_methods);
        let mut ops = std::mem::take(&mut index.ops);
        ops.retain(|op| !resolver.is_own_method(&index, op));
        index.ops = ops;
        let meanings =
            index.ops.iter().map(|op| resolver.meanings(&index, &op.path, op.place, op.anew)).collect();
        Self { path: path.to_owned(), problems, source, index, resolver, meanings }
    }

    /// As given to [`Module::parse`].
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What could not be parsed; everything around it is indexed all the same.
    pub fn problems(&self) -> &[Problem] {
        &self.problems
    }

    /// Text of a line, without its end.
    pub fn line(&self, line: u32) -> Option<&str> {
        self.source.line(line)
    }

    /// Qualified name of the function around a line, `<module>` outside of one. Decorators and the `def` line belong
    /// to their function.
    pub fn function_at(&self, line: u32) -> String {
        query::function_at(self, line)
    }

    /// The innermost simple statement or compound header that covers a line; of several on one line, the first that
    /// grows something.
    pub fn statement_at(&self, line: u32) -> Option<Statement> {
        query::statement_at(self, line)
    }

    /// Everything that the statement at a line grows.
    pub fn grows_at(&self, line: u32) -> Vec<GrowSite> {
        query::grows_at(self, line)
    }

    /// [`Module::grow_sites_of`] anybody's name.
    pub fn grow_sites(&self, name: &str) -> Vec<GrowSite> {
        self.grow_sites_of(name, &Owner::Any)
    }

    /// Statements that grow or rebind what is reached under a name, in order of lines: an attribute (`self.name`,
    /// `obj.name`), a variable, a string key (`val` in `history["val"].append(x)`). Aliases and helper functions
    /// are followed. An expression such as `self.meters["val"]` stands for its last name.
    pub fn grow_sites_of(&self, name: &str, owner: &Owner) -> Vec<GrowSite> {
        query::grow_sites(self, name, &query::narrowed(name, owner))
    }

    /// Where a name is first bound: once per function that binds it, `__init__` and class bodies first.
    pub fn creations(&self, name: &str) -> Vec<Creation> {
        self.creations_of(name, &Owner::Any)
    }

    /// As [`Module::creations`], of one owner's name.
    pub fn creations_of(&self, name: &str, owner: &Owner) -> Vec<Creation> {
        query::creations(self, name, &query::narrowed(name, owner))
    }

    /// Calls of a function or method by its last name: `backward`, `register_forward_hook`, `figure`.
    pub fn calls(&self, last_name: &str) -> Vec<Call> {
        query::calls(self, last_name)
    }

    /// The cache decorator (`lru_cache`, `cache`, `cached`, `memoize`, ...) of a function, by qualified or plain name.
    pub fn decorated(&self, function: &str) -> Option<Decorated> {
        query::decorated(self, function)
    }

    /// Loops of the same function around a line, innermost first.
    pub fn loops_at(&self, line: u32) -> Vec<Loop> {
        query::loops_at(self, line)
    }

    /// Facts about the container that `function` calls `name`.
    pub fn facts(&self, name: &str, function: &str) -> Facts {
        let owner = facts::owner(self, name, function);
        facts::facts(self, name, &owner)
    }

    /// Facts about an owner's name.
    pub fn facts_of(&self, name: &str, owner: &Owner) -> Facts {
        facts::facts(self, name, &query::narrowed(name, owner))
    }

    /// Stores the value without its graph: `.detach()`, or the guarded form where the module shows that numbers are
    /// stored too. Members of a tuple, dict or constructor are detached where they are variables that hold tensors;
    /// otherwise the fix is advice without edits. `None` where there is nothing to detach.
    pub fn detach_fix(&self, site: &GrowSite) -> Option<Fix> {
        fixes::detach(self, site)
    }

    /// As [`Module::detach_fix`], for values that are known to be of mixed types: `float(x) if isinstance(x,
    /// torch.Tensor) else x`.
    pub fn float_fix(&self, site: &GrowSite) -> Option<Fix> {
        fixes::float(self, site)
    }

    /// Bounds the container by the limit that the code sets and never reads: `deque(maxlen=self.window)` where the
    /// container is only appended to and iterated, else a `del` after the growth. Display-only advice where no such
    /// limit exists.
    pub fn bound_fix(&self, site: &GrowSite) -> Option<Fix> {
        fixes::bound(self, site)
    }

    /// Empties the container at the end of a function: the epoch-end hook of Lightning's step outputs, the function
    /// that consumes them.
    pub fn clear_fix(&self, site: &GrowSite) -> Option<Fix> {
        fixes::clear(self, site)
    }

    /// Stores a copy of a view, so that the large storage behind it goes.
    pub fn clone_fix(&self, site: &GrowSite) -> Option<Fix> {
        fixes::clone(self, site, false)
    }

    /// As [`Module::clone_fix`], of what is known to be arrays of numpy.
    pub fn copy_fix(&self, site: &GrowSite) -> Option<Fix> {
        fixes::clone(self, site, true)
    }

    /// Stores an exception without its traceback.
    pub fn traceback_fix(&self, site: &GrowSite) -> Option<Fix> {
        fixes::traceback(self, site)
    }

    /// Advice on a queue without a limit, at the line where it is made.
    pub fn queue_fix(&self, line: u32) -> Option<Fix> {
        fixes::queue(self, line)
    }

    /// Closes the figure that a line makes, after its last use in the same block.
    pub fn close_figure_fix(&self, line: u32) -> Option<Fix> {
        fixes::close_figure(self, line)
    }

    /// Advice to remove the handle of a hook that a line registers.
    pub fn remove_handle_fix(&self, line: u32) -> Option<Fix> {
        fixes::remove_handle(self, line)
    }

    /// `p.grad = None` instead of `p.grad.zero_()`, in the function of a `backward(create_graph=True)` at a line.
    pub fn grad_none_fix(&self, line: u32) -> Option<Fix> {
        fixes::grad_none(self, line)
    }

    /// `optimizer.zero_grad()` before the `backward` at a line.
    pub fn zero_grad_fix(&self, line: u32) -> Option<Fix> {
        fixes::zero_grad(self, line)
    }

    /// Takes the cache decorator off a function.
    pub fn uncache_fix(&self, function: &str) -> Option<Fix> {
        fixes::uncache(self, function)
    }
}
