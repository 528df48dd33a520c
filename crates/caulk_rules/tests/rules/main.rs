//! Every rule against its page: what the page says is what the rule does.

mod fixes;
mod page;
mod pages;
