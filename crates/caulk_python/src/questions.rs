//! What can be asked of the lines of a file.

use caulk_core::Fix;

use crate::facts::{self, Facts};
use crate::fixes;
use crate::lines::Lines;
use crate::query;
use crate::sites::{Call, Creation, Decorated, EditTry, GrowSite, Loop, Owner, Statement};

impl Lines<'_> {
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

    /// Libraries that the statement at a line names, `torch` for `F.relu(x)`.
    pub fn libraries_at(&self, line: u32) -> Vec<String> {
        query::libraries_at(self, line)
    }

    /// Last names of the functions and methods that the statement at a line calls.
    pub fn called_at(&self, line: u32) -> Vec<String> {
        query::called_at(self, line)
    }

    /// [`Lines::grow_sites_of`] anybody's name.
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

    /// As [`Lines::creations`], of one owner's name.
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

    /// Stores the value without its graph: `.detach()`, or the guarded form where the file shows that numbers are
    /// stored too. Members of a tuple, dict or constructor are detached where they are variables that hold tensors;
    /// otherwise the fix is advice without edits. `None` where there is nothing to detach.
    pub fn detach_fix(&self, site: &GrowSite) -> Option<Fix> {
        fixes::detach(self, site)
    }

    /// As [`Lines::detach_fix`], for values that are known to be of mixed types: `float(x) if isinstance(x,
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

    /// As [`Lines::clone_fix`], of what is known to be arrays of numpy.
    pub fn copy_fix(&self, site: &GrowSite) -> Option<Fix> {
        fixes::clone(self, site, true)
    }

    /// Lets a task leave the set that it is added to when it is done; `None` where something else uses the set.
    pub fn discard_fix(&self, site: &GrowSite) -> Option<Fix> {
        fixes::discard_when_done(self, site)
    }

    /// Does a task leave a container when it is done: `task.add_done_callback(container.discard)`?
    pub fn leave_when_done(&self, container: &str) -> bool {
        fixes::leave_when_done(self, container)
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

    /// Edits to try for what a line in this function makes grow, the most promising of each kind first. They may do harm: only a
    /// run with one shows whether it helps.
    pub fn tries(&self, line: u32, function: &str) -> Vec<EditTry> {
        fixes::tries(self, line, &query::plain_function(function))
    }

    /// Edits that leave the collector of cycles on where this file switches it off.
    pub fn collector_left_on(&self) -> Vec<EditTry> {
        fixes::left_on(self)
    }

    /// The edit that collects at the end of the outermost loop of this file around calls of a function of any file.
    pub fn collected_by_loop(&self, function: &str) -> Option<EditTry> {
        fixes::by_calls(self, &query::plain_function(function))
    }

    /// The functions of this file that call a function of any file.
    pub fn callers(&self, function: &str) -> Vec<String> {
        fixes::callers(self, &query::plain_function(function))
    }

    /// Edits that close the figures which this file saves.
    pub fn close_saved(&self) -> Vec<EditTry> {
        fixes::close_saved(self)
    }

    /// The edit that takes the frames off the exceptions that this file stores.
    pub fn without_frames(&self) -> Option<EditTry> {
        fixes::without_frames(self)
    }

    /// The edit that cuts a chain behind a line which binds its newest object to `newest`: each refers to the one before it
    /// through `link`.
    pub fn cut_chain(&self, line: u32, newest: &str, link: &str) -> Option<EditTry> {
        fixes::cut_chain(self, line, newest, link)
    }
}
