use caulk_core::Fix;
use crate::module::Module;
use crate::sites::GrowSite;
pub(crate) fn detach(_: &Module, _: &GrowSite) -> Option<Fix> { None }
pub(crate) fn float(_: &Module, _: &GrowSite) -> Option<Fix> { None }
pub(crate) fn bound(_: &Module, _: &GrowSite) -> Option<Fix> { None }
pub(crate) fn clear(_: &Module, _: &GrowSite) -> Option<Fix> { None }
pub(crate) fn clone(_: &Module, _: &GrowSite) -> Option<Fix> { None }
pub(crate) fn traceback(_: &Module, _: &GrowSite) -> Option<Fix> { None }
pub(crate) fn queue(_: &Module, _: u32) -> Option<Fix> { None }
pub(crate) fn close_figure(_: &Module, _: u32) -> Option<Fix> { None }
pub(crate) fn remove_handle(_: &Module, _: u32) -> Option<Fix> { None }
pub(crate) fn grad_none(_: &Module, _: u32) -> Option<Fix> { None }
pub(crate) fn zero_grad(_: &Module, _: u32) -> Option<Fix> { None }
pub(crate) fn uncache(_: &Module, _: &str) -> Option<Fix> { None }
