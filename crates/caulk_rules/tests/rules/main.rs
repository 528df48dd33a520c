//! Every rule against its page: what the page says is what the rule does.

mod caution;
mod examine;
mod fixes;
mod kept;
#[path = "../../../caulk_python/tests/mangle/mod.rs"]
mod mangle;
mod order;
mod page;
mod pages;
mod proof;
mod recall;
mod robust;
mod twins;
