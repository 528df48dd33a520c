//! The machine to plan for, as the arguments name it or as it is.

use anyhow::bail;
use camino::Utf8Path;
use caulk_plan::{Card, Machine, gpu};

use crate::cli::PlanArgs;
use crate::doctor;
use crate::printer::Printer;

/// What there is to fit into.
///
/// # Errors
/// If there is no GPU of that name.
pub(crate) fn machine(args: &PlanArgs, printer: Printer) -> anyhow::Result<Machine> {
    let mut machine = Machine {
        ram: args.ram.map(|size| size.0 as f64),
        dataset: args.before.dataset.map_or(0.0, |size| size.0 as f64),
        video: args.before.video.map(Into::into),
        ..Machine::default()
    };
    if let Some(name) = &args.gpu {
        machine.gpu = Some(Card::from(&gpu(name)?));
    } else if let Some(size) = args.vram {
        machine.gpu =
            Some(Card { name: "a GPU".into(), memory: size.0 as f64, bfloat16: None, capability: None });
    } else if args.auto {
        look(args, &mut machine, printer)?;
    }
    Ok(machine)
}

/// This machine: limits of control groups count, and the smallest of several GPUs.
fn look(args: &PlanArgs, machine: &mut Machine, printer: Printer) -> anyhow::Result<()> {
    let here = doctor::machine();
    let limits = [here.memory, here.cgroup].into_iter().flatten().map(|space| space.total as f64);
    machine.ram = machine.ram.or(limits.reduce(f64::min));
    machine.processors = Some(here.quota.map_or(here.processors, |quota| quota.ceil() as usize) as u64);
    match doctor::python(args.python.as_deref().map(Utf8Path::as_str)) {
        Ok(python) => {
            let smallest = python.gpus.iter().min_by_key(|gpu| gpu.total);
            machine.gpu = smallest.map(|gpu| Card {
                name: gpu.name.clone(),
                memory: gpu.total as f64,
                bfloat16: Some(gpu.capability >= (8, 0)),
                capability: Some(gpu.capability),
            });
            if machine.gpu.is_none() {
                printer.note("torch sees no GPU here: the plan is for the CPU");
            }
        }
        Err(cause) if args.python.is_some() => bail!("{cause}"),
        Err(cause) => printer.note(&format!("no GPU is looked for ({cause}): the plan is for the CPU")),
    }
    Ok(())
}
