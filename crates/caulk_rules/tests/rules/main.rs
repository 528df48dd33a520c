//! Every rule against its page: what the page says is what the rule does.

mod fixes;
mod mangle;
mod page;
mod pages;
mod robust;
mod twins;
