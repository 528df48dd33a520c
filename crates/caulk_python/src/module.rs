//! One parsed file, and what can be asked of it.

use caulk_core::Fix;

use crate::facts::Facts;
use crate::sites::{Call, Creation, Decorated, GrowSite, Loop, Owner, Statement};

/// A Python file, indexed.
#[derive(Debug)]
pub struct Module {
    path: String,
    problems: Vec<String>,
}

impl Module {
    /// Parses and indexes. `path` goes into sites and edits as it is.
    pub fn parse(path: &str, text: &str) -> Self {
        let _ = text;
        Self { path: path.to_owned(), problems: Vec::new() }
    }

    /// As given to [`Module::parse`].
    pub fn path(&self) -> &str {
        &self.path
    }

    /// What could not be parsed, for people; everything around it is indexed all the same.
    pub fn problems(&self) -> &[String] {
        &self.problems
    }

    /// Text of a line, without its end.
    pub fn line(&self, line: u32) -> Option<&str> {
        let _ = line;
        None
    }

    /// Qualified name of the function around a line, `<module>` outside of one. Decorators and the `def` line belong
    /// to their function.
    pub fn function_at(&self, line: u32) -> String {
        let _ = line;
        "<module>".to_owned()
    }

    /// The innermost simple statement or compound header that covers a line; of several on one line, the first that
    /// grows something.
    pub fn statement_at(&self, line: u32) -> Option<Statement> {
        let _ = line;
        None
    }

    /// Everything that the statement at a line grows.
    pub fn grows_at(&self, line: u32) -> Vec<GrowSite> {
        let _ = line;
        Vec::new()
    }

    /// [`Module::grow_sites_of`] anybody's name.
    pub fn grow_sites(&self, name: &str) -> Vec<GrowSite> {
        self.grow_sites_of(name, &Owner::Any)
    }

    /// Statements that grow or rebind what is reached under a name, in order of lines: an attribute (`self.name`,
    /// `obj.name`), a variable, a string key (`val` in `history["val"].append(x)`). Aliases and helper functions
    /// are followed. An expression such as `self.meters["val"]` stands for its last name.
    pub fn grow_sites_of(&self, name: &str, owner: &Owner) -> Vec<GrowSite> {
        let _ = (name, owner);
        Vec::new()
    }

    /// Where a name is first bound: once per function that binds it, `__init__` and class bodies first.
    pub fn creations(&self, name: &str) -> Vec<Creation> {
        self.creations_of(name, &Owner::Any)
    }

    /// As [`Module::creations`], of one owner's name.
    pub fn creations_of(&self, name: &str, owner: &Owner) -> Vec<Creation> {
        let _ = (name, owner);
        Vec::new()
    }

    /// Calls of a function or method by its last name: `backward`, `register_forward_hook`, `figure`.
    pub fn calls(&self, last_name: &str) -> Vec<Call> {
        let _ = last_name;
        Vec::new()
    }

    /// The cache decorator (`lru_cache`, `cache`, `cached`, `memoize`, ...) of a function, by qualified or plain name.
    pub fn decorated(&self, function: &str) -> Option<Decorated> {
        let _ = function;
        None
    }

    /// Loops of the same function around a line, innermost first.
    pub fn loops_at(&self, line: u32) -> Vec<Loop> {
        let _ = line;
        Vec::new()
    }

    /// Facts about the container that `function` calls `name`.
    pub fn facts(&self, name: &str, function: &str) -> Facts {
        let _ = (name, function);
        Facts::default()
    }

    /// Facts about an owner's name.
    pub fn facts_of(&self, name: &str, owner: &Owner) -> Facts {
        let _ = (name, owner);
        Facts::default()
    }

    /// Stores the value without its graph: `.detach()`, or the guarded form where the module shows that numbers are
    /// stored too. Members of a tuple, dict or constructor are detached where they are variables that hold tensors;
    /// otherwise the fix is advice without edits. `None` where there is nothing to detach.
    pub fn detach_fix(&self, site: &GrowSite) -> Option<Fix> {
        let _ = site;
        None
    }

    /// As [`Module::detach_fix`], for values that are known to be of mixed types: `float(x) if isinstance(x,
    /// torch.Tensor) else x`.
    pub fn float_fix(&self, site: &GrowSite) -> Option<Fix> {
        let _ = site;
        None
    }

    /// Bounds the container by the limit that the code sets and never reads: `deque(maxlen=self.window)` where the
    /// container is only appended to and iterated, else a `del` after the growth. Display-only advice where no such
    /// limit exists.
    pub fn bound_fix(&self, site: &GrowSite) -> Option<Fix> {
        let _ = site;
        None
    }

    /// Empties the container at the end of a function: the epoch-end hook of Lightning's step outputs, the function
    /// that consumes them.
    pub fn clear_fix(&self, site: &GrowSite) -> Option<Fix> {
        let _ = site;
        None
    }

    /// Stores a copy of a view, so that the large storage behind it goes.
    pub fn clone_fix(&self, site: &GrowSite) -> Option<Fix> {
        let _ = site;
        None
    }

    /// Stores an exception without its traceback.
    pub fn traceback_fix(&self, site: &GrowSite) -> Option<Fix> {
        let _ = site;
        None
    }

    /// Advice on a queue without a limit, at the line where it is made.
    pub fn queue_fix(&self, line: u32) -> Option<Fix> {
        let _ = line;
        None
    }

    /// Closes the figure that a line makes, after its last use in the same block.
    pub fn close_figure_fix(&self, line: u32) -> Option<Fix> {
        let _ = line;
        None
    }

    /// Advice to remove the handle of a hook that a line registers.
    pub fn remove_handle_fix(&self, line: u32) -> Option<Fix> {
        let _ = line;
        None
    }

    /// `p.grad = None` instead of `p.grad.zero_()`, in the function of a `backward(create_graph=True)` at a line.
    pub fn grad_none_fix(&self, line: u32) -> Option<Fix> {
        let _ = line;
        None
    }

    /// `optimizer.zero_grad()` before the `backward` at a line.
    pub fn zero_grad_fix(&self, line: u32) -> Option<Fix> {
        let _ = line;
        None
    }

    /// Takes the cache decorator off a function.
    pub fn uncache_fix(&self, function: &str) -> Option<Fix> {
        let _ = function;
        None
    }
}
