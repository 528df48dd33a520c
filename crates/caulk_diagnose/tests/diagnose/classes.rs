//! Which class, which line, which change.

use caulk_core::wire::{
    BackwardSite, ContainerKind, ContainerLen, Contents, Holder, Message, PathStep, Peak, StepKind, Trait,
};
use caulk_core::{Applicability, Confidence, LeakClass, Scope, Severity, State};

use crate::run::{MB, Run, attribute, elements, global, library, local, message, rising};

const TRAINER: &str = "\
import torch
from functools import lru_cache
import matplotlib.pyplot as plt

RESULTS = []


class Trainer:
    def __init__(self):
        self.ious = []
        self.total = 0.0
        self.hidden = None
        self.cache = {}
        self.failures = []
        self.tasks = []

    def validate(self, batches):
        rows = []
        for batch in batches:
            loss = self.model(batch)
            self.ious.append(loss)
            self.total += loss
            rows.append({'loss': loss.item(), 'name': batch.name})
            if batch.key not in self.cache:
                self.cache[batch.key] = torch.rand(3)
            features = self.cache[batch.key]
            try:
                self.step(loss)
            except ValueError as exc:
                self.failures.append(exc)
            self.tasks.append(lambda: loss.mean())
            RESULTS.append(features)

    def roll(self, x):
        out, hidden = self.policy(x, self.hidden)
        self.hidden = hidden
        return out

    def step(self, loss):
        loss.backward(create_graph=True)
        self.opt.step()

    @lru_cache(maxsize=None)
    def basis(self, x):
        return x * 2

    def probe(self, layer):
        layer.register_forward_hook(self.hook)

    def plot(self, values):
        plt.figure(figsize=(6, 6))
        plt.plot(values)
        plt.savefig('out.png')

    def follow(self, x):
        self.trail = self.trail + self.score(x)

    def keep(self, fig):
        self.pages.append(fig)

    def draw(self, x):
        self.ax.scatter(x, x)
";

/// Eight epochs, each of them 10 MB more; whatever grows does so by 4 elements of 2.5 MB per epoch.
fn leak() -> Run {
    Run::of(TRAINER).epochs(rising(400 * MB, 10 * MB, 8))
}

fn lengths() -> impl Iterator<Item = u64> {
    rising(4, 4, 8)
}

#[track_caller]
fn check(run: &Run, class: LeakClass, line: &str, container: &str) {
    let finding = run.finding();
    let site = finding.sites.first().expect("a line");
    assert_eq!((finding.class, site.line), (class, run.line(line)), "{finding:#?}");
    assert_eq!(finding.container, container);
    assert_eq!(site.file, "train.py");
}

#[test]
fn tensors_with_graphs_in_a_list() {
    let contents = elements(5 * MB / 2, &[Trait::Tensor, Trait::Graph]);
    let run = leak()
        .grown(ContainerKind::List, attribute(1, "trainer", "Trainer", "ious"), contents, lengths())
        .traced(1, "self.ious.append(loss)", "Trainer.validate");
    check(&run, LeakClass::GraphKeptInContainer, "self.ious.append(loss)", "self.ious");
    let finding = run.finding();
    assert_eq!(
        (finding.confidence, finding.severity, finding.scope),
        (Confidence::Proved, Severity::Error, Scope::Run)
    );
    let growth = finding.growth.as_ref().expect("it grows");
    assert_eq!((growth.elements_per_unit.round(), growth.elements), (4.0, 32));
    assert!((growth.bytes_per_unit / (10.0 * MB as f64) - 1.0).abs() < 0.01, "{growth:?}");
    insta::assert_json_snapshot!(caulk_report::Shown::of(&finding));
}

#[test]
fn without_a_trace_the_only_line_that_grows_the_name_is_likely() {
    let contents = elements(5 * MB / 2, &[Trait::Tensor, Trait::Graph]);
    let holder = attribute(1, "trainer", "Trainer", "ious");
    let run = leak().grown(ContainerKind::List, holder, contents, lengths());
    check(&run, LeakClass::GraphKeptInContainer, "self.ious.append(loss)", "self.ious");
    assert_eq!(run.finding().confidence, Confidence::Likely);
}

fn graph(nodes: u64) -> Contents {
    let traits = vec![Trait::Tensor, Trait::Graph];
    let saved_bytes = nodes * 100 * 1024;
    Contents { graph_nodes: nodes, saved_bytes, bytes_per_element: 100 * 1024, traits, ..Contents::default() }
}

/// A graph of 100 more nodes, and as many times 100 KB, at each boundary.
fn growing_graph(name: &str) -> Run {
    let holder = attribute(1, "trainer", "Trainer", name);
    let mut run = leak().grown(ContainerKind::Graph, holder, graph(100), rising(100, 100, 8));
    for boundary in 1..8 {
        run = run.say(Contents { id: 1, boundary, ..graph(100 + 100 * u64::from(boundary)) });
    }
    run
}

#[test]
fn a_running_sum() {
    let run = growing_graph("total").traced(1, "self.total += loss", "Trainer.validate");
    check(&run, LeakClass::LossKeptWithGraph, "self.total += loss", "self.total");
    let growth = run.finding().growth.clone().expect("it grows");
    assert!((growth.bytes_per_unit / (100.0 * 100.0 * 1024.0) - 1.0).abs() < 0.05, "{growth:?}");
}

/// Where something that `Trainer.trail` leads to was seen.
fn in_trail(type_name: &str) -> Run {
    let mut holder = attribute(1, "trainer", "Trainer", "trail");
    holder.path.last_mut().expect("the attribute").type_name = type_name.into();
    if type_name == "tuple" {
        holder.path.push(PathStep {
            kind: StepKind::Index,
            name: "0".into(),
            type_name: "torch.Tensor".into(),
        });
    }
    let mut run = leak().grown(ContainerKind::Graph, holder, graph(100), rising(100, 100, 8));
    for boundary in 1..8 {
        run = run.say(Contents { id: 1, boundary, ..graph(100 + 100 * u64::from(boundary)) });
    }
    run.traced(1, "self.trail = self.trail", "Trainer.follow")
}

#[test]
fn a_sum_of_what_was_seen_to_be_tuples_is_growth_of_a_container() {
    let run = in_trail("tuple");
    check(&run, LeakClass::GraphKeptInContainer, "self.trail = self.trail", "self.trail");
    let change = caulk_report::fix(&run.finding()).expect("a change");
    assert_eq!((change.edits.len(), change.applicability), (0, Applicability::DisplayOnly));

    let run = in_trail("torch.Tensor");
    check(&run, LeakClass::LossKeptWithGraph, "self.trail = self.trail", "self.trail");
    assert_eq!(caulk_report::fix(&run.finding()).expect("a change").edits.len(), 1);
}

#[test]
fn a_state_that_is_fed_back() {
    let run = growing_graph("hidden").traced(1, "self.hidden = hidden", "Trainer.roll");
    check(&run, LeakClass::StateNotDetached, "self.hidden = hidden", "self.hidden");
}

/// Graphs that a local variable of `main` and an attribute refer to, and where both were seen to get another one; one graph
/// if that was seen, too.
fn of_two_names(stored: &str, bound: &str, also: &Trait) -> Vec<String> {
    let source = format!(
        "class Meter:\n    def push(self, loss):\n        {stored}\n        return self.trend\n\n\n\
         def main():\n    for epoch in range(8):\n        {bound}\n"
    );
    let mut run = Run::of(&source).epochs(rising(400 * MB, 100 * 100 * 1024, 8));
    for holder in [local(1, "main", "trend"), attribute(2, "meter", "Meter", "trend")] {
        let id = holder.id;
        let mut first = graph(100);
        first.traits.extend((id == 2).then(|| also.clone()));
        run = run.grown(ContainerKind::Graph, holder, first, rising(100, 100, 8));
        for boundary in 1..8 {
            run = run.say(Contents { id, boundary, ..graph(100 + 100 * u64::from(boundary)) });
        }
    }
    let run = run.traced(1, bound, "main").traced(2, stored, "Meter.push");
    run.diagnose().findings.into_iter().map(|finding| finding.container.clone()).collect()
}

#[test]
fn of_two_names_of_a_graph_that_is_blamed_by_which_it_is_fed_back() {
    let handed_on = "trend = meter.push(loss())";
    let summed = "self.trend = 0.8 * self.trend + loss";
    let also = &Trait::Also { function: "main".into(), variable: "trend".into() };
    assert_eq!(of_two_names(summed, handed_on, also), ["self.trend"]);
    assert_eq!(of_two_names("self.trend = loss", "trend = meter.push(trend + loss())", also), ["trend"]);
    let two = of_two_names(summed, "trend = 0.8 * trend + loss()", &Trait::Tensor);
    assert_eq!(two.len(), 2, "as large as each other, and not the same: {two:?}");
}

#[test]
fn gradients_with_graphs_blame_the_backward_that_recorded_itself() {
    let mut holder = attribute(1, "trainer", "Trainer", "grad");
    holder.owner_type = "torch.nn.parameter.Parameter".into();
    let backward =
        BackwardSite { create_graph: true, function: "Trainer.step".into(), ..BackwardSite::default() };
    let mut run = leak()
        .grown(ContainerKind::Graph, holder, graph(100), rising(100, 100, 8))
        .backward("loss.backward(create_graph=True)", backward);
    for boundary in 1..8 {
        run = run.say(Contents { id: 1, boundary, ..graph(100 + 100 * u64::from(boundary)) });
    }
    check(&run, LeakClass::GraphRetained, "loss.backward(create_graph=True)", "loss.backward");
}

#[test]
fn several_parameters_with_one_graph_are_one_finding_of_its_size() {
    let backward = BackwardSite { create_graph: true, ..BackwardSite::default() };
    let mut run = leak().backward("loss.backward(create_graph=True)", backward);
    for id in 1..5 {
        let mut holder = attribute(id, "trainer", "Trainer", "grad");
        holder.expression = format!("model[{id}].weight.grad");
        run = run.grown(ContainerKind::Graph, holder, graph(100), rising(100, 100, 8));
        for boundary in 1..8 {
            run = run.say(Contents { id, boundary, ..graph(100 + 100 * u64::from(boundary)) });
        }
    }
    let growth = run.finding().growth.clone().expect("it grows");
    assert!((growth.bytes_per_unit / (100.0 * 100.0 * 1024.0) - 1.0).abs() < 0.05, "{growth:?}");
    let [_, high] = growth.interval.expect("eight boundaries");
    assert!(high < 1.1 * growth.bytes_per_unit, "{growth:?}");
}

#[test]
fn a_dict_that_is_looked_up_is_a_cache() {
    let contents = || elements(5 * MB / 2, &[Trait::Tensor]);
    let holder = || attribute(1, "trainer", "Trainer", "cache");
    let run = leak().grown(ContainerKind::Dict, holder(), contents(), lengths());
    check(&run, LeakClass::UnboundedCache, "self.cache[batch.key] =", "self.cache");
    let mut by_epoch = contents();
    by_epoch.traits.push(Trait::EpochKey);
    let run = leak().grown(ContainerKind::Dict, holder(), by_epoch, lengths());
    check(&run, LeakClass::AugmentationPerFold, "self.cache[batch.key] =", "self.cache");
    assert_eq!(run.finding().severity, Severity::Warning);
}

#[test]
fn a_functools_cache_is_blamed_at_its_decorator() {
    let mut holder = attribute(1, "trainer", "Trainer", "basis");
    holder.function = "Trainer.basis".into();
    let cache = |traits: &[Trait]| {
        leak().grown(ContainerKind::LruCache, holder.clone(), elements(5 * MB / 2, traits), lengths())
    };
    let line = "@lru_cache(maxsize=None)";
    check(
        &cache(&[Trait::TensorKey, Trait::SelfKey, Trait::Tensor]),
        LeakClass::CacheKeyedByTensor,
        line,
        "basis",
    );
    check(&cache(&[Trait::SelfKey, Trait::Tensor]), LeakClass::CachedMethod, line, "basis");
    check(&cache(&[Trait::Tensor]), LeakClass::UnboundedCache, line, "basis");
}

#[test]
fn what_elements_are_names_the_class() {
    let check_traits = |name: &str, traits: &[Trait], class: LeakClass, line: &str| {
        let holder = attribute(1, "trainer", "Trainer", name);
        let run = leak().grown(ContainerKind::List, holder, elements(5 * MB / 2, traits), lengths());
        check(&run, class, line, &format!("self.{name}"));
    };
    let failure = "self.failures.append(exc)";
    check_traits(
        "failures",
        &[Trait::Exception, Trait::Tensor, Trait::Graph],
        LeakClass::ExceptionKeepsFrames,
        failure,
    );
    check_traits("failures", &[Trait::Optimizer, Trait::Tensor], LeakClass::OptimizerRecreated, failure);
    check_traits("failures", &[Trait::LogRecord], LeakClass::LogRecordsKept, failure);
    // A tuple with the exception in it: only the source tells.
    check_traits("failures", &[Trait::Frame], LeakClass::ExceptionKeepsFrames, failure);
    let task = "self.tasks.append(lambda: loss.mean())";
    check_traits(
        "tasks",
        &[Trait::Function, Trait::Tensor, Trait::Graph],
        LeakClass::CallbackKeepsTensor,
        task,
    );
    check_traits("tasks", &[Trait::Tensor], LeakClass::UnboundedHistory, task);
}

#[test]
fn rows_of_scalars_in_a_local_list() {
    let run = leak().grown(
        ContainerKind::List,
        local(1, "Trainer.validate", "rows"),
        elements(5 * MB / 2, &[Trait::Record]),
        lengths(),
    );
    check(&run, LeakClass::RowsKeptUntilEnd, "rows.append(", "rows");
    assert_eq!(run.finding().severity, Severity::Warning);
}

#[test]
fn a_list_of_the_module() {
    let contents = elements(5 * MB / 2, &[Trait::Tensor]);
    let run = leak().grown(ContainerKind::List, global(1, "RESULTS"), contents, lengths()).traced(
        1,
        "RESULTS.append",
        "Trainer.validate",
    );
    check(&run, LeakClass::GlobalAccumulation, "RESULTS.append", "RESULTS");
}

#[test]
fn small_views_of_large_storages() {
    let mut contents = elements(5 * MB / 2, &[Trait::Tensor]);
    (contents.tensor_bytes_per_element, contents.viewed_bytes_per_element) = (5 * MB / 2, 4096);
    let holder = attribute(1, "trainer", "Trainer", "ious");
    let run = leak().grown(ContainerKind::List, holder, contents, lengths());
    check(&run, LeakClass::ViewPinsStorage, "self.ious.append(loss)", "self.ious");
}

#[test]
fn views_of_arrays_are_copied_and_those_of_tensors_cloned() {
    let fixed = |fact: Trait| {
        let mut contents = elements(5 * MB / 2, &[fact]);
        (contents.tensor_bytes_per_element, contents.viewed_bytes_per_element) = (5 * MB / 2, 4096);
        let holder = attribute(1, "trainer", "Trainer", "ious");
        let finding = leak().grown(ContainerKind::List, holder, contents, lengths()).finding();
        caulk_report::fix(&finding).expect("an edit").edits[0].content.clone()
    };
    assert_eq!(
        (fixed(Trait::Tensor).as_str(), fixed(Trait::Array).as_str()),
        ("loss.clone()", "loss.copy()")
    );
}

#[test]
fn a_chain_is_told_by_its_end_and_by_what_links_it() {
    let contents = elements(5 * MB / 2, &[Trait::Tensor, Trait::Lasts, Trait::Link("before".into())]);
    let holder = attribute(1, "trainer", "Trainer", "hidden");
    let run = leak().grown(ContainerKind::Chain, holder, contents, lengths()).traced(
        1,
        "self.hidden = hidden",
        "Trainer.roll",
    );
    check(&run, LeakClass::UnboundedHistory, "self.hidden = hidden", "self.hidden");
    let told = message(&run.finding());
    assert!(
        told.starts_with("`self.hidden` is the end of a chain through `before` that grows by 4"),
        "{told}"
    );
}

#[test]
fn what_was_found_by_what_lasts_is_surer_than_a_look_at_the_elements() {
    let holder = attribute(1, "trainer", "Trainer", "tasks");
    let run = leak().grown(ContainerKind::Set, holder, elements(100, &[Trait::Shared]), lengths());
    let run = run.say(Contents { id: 1, boundary: 7, ..elements(5 * MB / 2, &[Trait::Lasts]) });
    let growth = run.finding().growth.clone().expect("it grows");
    assert!((growth.bytes_per_unit / (10.0 * MB as f64) - 1.0).abs() < 0.01, "{growth:?}");
}

#[test]
fn a_dict_of_every_thread_tells_of_threads() {
    let mut holder = global(1, "RESULTS");
    holder.path.last_mut().expect("a global").type_name = "_thread._local".into();
    holder.path.push(PathStep { kind: StepKind::Internal, ..PathStep::default() });
    let run = leak().grown(ContainerKind::Dict, holder, elements(5 * MB / 2, &[Trait::Tensor]), lengths());
    assert_eq!(run.finding().class, LeakClass::ThreadNeverEnds);
}

#[test]
fn what_is_to_run_at_exit_is_blamed_at_the_loop_that_registers_it() {
    let source = "\
import atexit

atexit.register(print)
for epoch in range(8):
    images = load(epoch)
    atexit.register(save, images)
";
    let step = PathStep { kind: StepKind::Module, name: "atexit".into(), ..PathStep::default() };
    let holder = Holder { id: 1, path: vec![step], expression: "atexit".into(), ..Holder::default() };
    let mut run = Run::of(source).epochs(rising(400 * MB, 10 * MB, 8));
    for (boundary, len) in (0..).zip(rising(3, 1, 8)) {
        let kind = ContainerKind::List;
        run = run.say(ContainerLen { boundary, id: 1, kind, len, ..ContainerLen::default() });
    }
    let run = run.say(holder).backward("images = load", BackwardSite::default());
    check(&run, LeakClass::CallbackKeepsTensor, "atexit.register(save, images)", "atexit.register");
    let growth = run.finding().growth.clone().expect("it grows");
    assert!((growth.bytes_per_unit / (10.0 * MB as f64) - 1.0).abs() < 0.01, "{growth:?}");
}

#[test]
fn hooks_blame_the_registering_call() {
    let mut holder = attribute(1, "model", "Net", "_forward_hooks");
    holder.path.push(PathStep { kind: StepKind::Internal, ..PathStep::default() });
    let contents = elements(5 * MB / 2, &[Trait::Function, Trait::Tensor]);
    let mut run = leak().grown(ContainerKind::Dict, holder, contents, lengths());
    let line = run.line("layer.register_forward_hook");
    run = run.say(caulk_core::wire::TraceHit {
        id: 1,
        file: "/lib/torch/nn/modules/module.py".into(),
        line: 1700,
        user_file: "/job/train.py".into(),
        user_line: line,
        user_function: "Trainer.probe".into(),
        growth: 4,
        count: 4,
        ..Default::default()
    });
    check(&run, LeakClass::HookNeverRemoved, "layer.register_forward_hook", "layer.register_forward_hook");
}

#[test]
fn gradients_that_nothing_clears_cost_no_memory() {
    let stale = BackwardSite { checked: 20, stale_gradients: 20, ..BackwardSite::default() };
    let flat = [400 * MB; 8];
    let run = Run::of(TRAINER).epochs(flat).backward("loss.backward", stale.clone());
    check(&run, LeakClass::GradientsNeverCleared, "loss.backward", "loss.backward");
    let finding = run.finding();
    assert_eq!(finding.severity, Severity::Warning);
    assert!(message(&finding).contains("does not grow") && finding.growth.is_none(), "{}", message(&finding));
    // Accumulation over two passes starts every other one with gradients, as it should.
    let accumulates = BackwardSite { stale_gradients: 10, ..stale };
    let run = Run::of(TRAINER).epochs(flat).backward("loss.backward", accumulates);
    assert_eq!(run.diagnose().findings, []);
}

#[test]
fn graphs_in_a_local_list_are_a_matter_of_the_epoch() {
    let peak = Peak {
        boundary: 5,
        in_use_bytes: 700 * MB,
        baseline_bytes: 400 * MB,
        ids: vec![1],
        ..Peak::default()
    };
    let run = Run::of(TRAINER)
        .epochs([400 * MB; 8])
        .grown(
            ContainerKind::List,
            local(1, "Trainer.validate", "rows"),
            elements(5 * MB / 2, &[Trait::Tensor, Trait::Graph]),
            [100],
        )
        .peak(peak);
    let finding = run.finding();
    assert_eq!((finding.scope, finding.severity), (Scope::Epoch, Severity::Warning));
    assert_eq!(finding.sites[0].line, run.line("rows.append("));
    let verdicts = run.diagnose().verdicts;
    assert_eq!(verdicts[0].state, State::GrowsWithinEpoch, "{verdicts:?}");
}

#[test]
fn the_state_of_an_optimizer_grows_by_the_line_that_adds_parameters() {
    let added = |line: &str| {
        let source = format!("def grow(opt, layer):\n    {line}\n\n\ndef train(opt):\n    opt.step()\n");
        let mut state = attribute(0, "opt", "Adam", "state");
        state.owner_type = "torch.optim.adam.Adam".into();
        let run = Run::of(&source)
            .epochs(rising(400 * MB, 10 * MB, 8))
            .grown(ContainerKind::Dict, state, elements(5 * MB, &[Trait::Tensor]), rising(8, 2, 8))
            .traced(0, "opt.step()", "train");
        run.finding()
    };
    for line in [
        "opt.add_param_group({'params': layer})",
        "opt.param_groups[1]['params'] = list(layer)",
        "opt.param_groups[0][\"params\"].extend(layer)",
    ] {
        let finding = added(line);
        assert_eq!((finding.class, finding.sites[0].line), (LeakClass::OptimizerRecreated, 2), "{line}");
        assert!(message(&finding).contains("is given other parameters"), "{}", message(&finding));
    }
    assert_eq!(added("print(opt.param_groups[0]['params'] == layer)").sites[0].line, 6);
    assert_eq!(added("print('group[\"params\"] = layer')").sites[0].line, 6);
}

fn change(run: &Run) -> String {
    caulk_report::fix(&run.finding()).expect("a change").description
}

#[test]
fn what_stays_of_tensors_without_their_graphs_is_told() {
    let run = |saved: u64| {
        let contents = Contents {
            tensor_bytes_per_element: 5 * MB / 2 - saved,
            viewed_bytes_per_element: 5 * MB / 2 - saved,
            saved_bytes_per_element: saved,
            ..elements(5 * MB / 2, &[Trait::Tensor, Trait::Graph])
        };
        let holder = attribute(1, "trainer", "Trainer", "pages");
        leak().grown(ContainerKind::List, holder, contents, lengths())
    };
    assert_eq!(run(MB).finding().class, LeakClass::GraphKeptInContainer);
    assert!(
        change(&run(MB)).contains("the values themselves stay, +6.00 MB per epoch"),
        "{}",
        change(&run(MB))
    );
    assert!(!change(&run(2 * MB)).contains("themselves"), "{}", change(&run(2 * MB)));
}

#[test]
fn figures_of_the_program_s_own_are_let_go_of_and_not_closed() {
    let holder = attribute(1, "trainer", "Trainer", "pages");
    let run = leak()
        .grown(ContainerKind::List, holder, elements(5 * MB / 2, &[Trait::Figure]), lengths())
        .traced(1, "self.pages.append(fig)", "Trainer.keep");
    check(&run, LeakClass::FigureNotClosed, "self.pages.append(fig)", "self.pages");
    assert!(!change(&run).contains("plt.close"), "{}", change(&run));
}

#[test]
fn open_figures_that_nobody_had_the_time_to_look_at_weigh_what_is_left() {
    let mut registry = library(1, "matplotlib._pylab_helpers", "figs");
    registry.path[1].name = "Gcf".into();
    let cache = |owner: &str| Holder { owner_type: owner.into(), ..library(2, "matplotlib.text", "data") };
    let run = |owner: &str| {
        leak()
            .grown(ContainerKind::Dict, registry.clone(), Contents::default(), lengths())
            .traced(1, "plt.figure", "Trainer.plot")
            .grown(ContainerKind::Dict, cache(owner), Contents::default(), lengths())
            .traced(2, "plt.savefig", "Trainer.plot")
            .edit(|recording| {
                recording.events.retain(|event| !matches!(event.message, Message::Contents(_)));
            })
    };
    let findings = run("matplotlib.text.Cache").diagnose().findings;
    let told: Vec<_> = findings.iter().map(|finding| (finding.sites[0].line, finding.severity)).collect();
    let first = run("").line("plt.figure");
    assert_eq!(told, [(first, Severity::Error), (first + 2, Severity::Info)]);
    // Entries for what lives elsewhere.
    let findings = run("weakref.WeakKeyDictionary").diagnose().findings;
    assert_eq!(findings.iter().map(|finding| finding.sites[0].line).collect::<Vec<_>>(), [first]);
}

/// `trainer.ax._children`: what is drawn on one Axes.
fn artists() -> Holder {
    let step = |name: &str, type_name: &str| PathStep {
        kind: StepKind::Attribute,
        name: name.into(),
        type_name: type_name.into(),
    };
    let mut holder = attribute(1, "trainer", "Trainer", "ax");
    holder.path.pop();
    holder.path.extend([step("ax", "matplotlib.axes._axes.Axes"), step("_children", "list")]);
    holder.name = "_children".into();
    holder.owner_type = "matplotlib.axes._axes.Axes".into();
    holder
}

#[test]
fn what_piles_up_on_one_axes_is_wiped() {
    let contents = elements(5 * MB / 2, &[Trait::Shared]);
    let run = leak().grown(ContainerKind::List, artists(), contents, lengths()).traced(
        1,
        "self.ax.scatter(x, x)",
        "Trainer.draw",
    );
    check(&run, LeakClass::FigureNotClosed, "self.ax.scatter(x, x)", "self.ax.scatter");
    assert!(change(&run).contains("ax.clear()"), "{}", change(&run));
}

#[test]
fn a_list_that_nobody_looked_into_is_not_charged_with_what_is_drawn() {
    let names = attribute(2, "trainer", "Trainer", "pages");
    let run = leak()
        .grown(ContainerKind::List, artists(), elements(5 * MB / 4, &[Trait::Shared]), lengths())
        .traced(1, "self.ax.scatter(x, x)", "Trainer.draw")
        .grown(ContainerKind::List, names, Contents::default(), lengths())
        .traced(2, "self.pages.append(fig)", "Trainer.keep")
        .edit(|recording| {
            let looked =
                |message: &Message| matches!(message, Message::Contents(contents) if contents.id == 2);
            recording.events.retain(|event| !looked(&event.message));
        });
    let findings = run.diagnose().findings;
    let list = findings.iter().find(|finding| finding.holder.ends_with("pages")).expect("it grows");
    assert_eq!(list.severity, Severity::Info, "{findings:#?}");
}

#[test]
fn what_only_refers_to_its_elements_is_not_charged_with_what_is_left() {
    let charged = |type_name: &str| {
        let contents =
            Contents { element_types: vec![(type_name.into(), 8)], ..elements(64, &[Trait::Shared]) };
        let holder = attribute(1, "trainer", "Trainer", "pages");
        let run = leak().grown(ContainerKind::List, holder, contents, lengths());
        let run = run.traced(1, "self.pages.append(fig)", "Trainer.keep");
        let growths = run.diagnose().findings.into_iter().filter_map(|finding| finding.growth.clone());
        growths.map(|growth| growth.bytes_per_unit).fold(0.0, f64::max)
    };
    assert!(charged("builtins.Page") > 9.0 * MB as f64);
    assert!(charged("weakref.ReferenceType") < 1024.0);
}

#[test]
fn what_only_refers_to_the_elements_of_a_list_adds_none_to_them() {
    let contents = |type_name: &str| Contents {
        element_types: vec![(type_name.into(), 8)],
        ..elements(5 * MB / 2, &[Trait::Tensor])
    };
    let line = "self.pages.append(fig)";
    let pages = attribute(1, "trainer", "Trainer", "pages");
    let run = leak().grown(ContainerKind::List, pages, contents("torch.Tensor"), lengths());
    let run = run.traced(1, line, "Trainer.keep");
    let all = library(2, "library", "_all");
    let run = run.grown(ContainerKind::Set, all, contents("weakref.ReferenceType"), lengths());
    let finding = run.traced(2, line, "Trainer.keep").finding();
    let growth = finding.growth.clone().expect("it grows");
    assert_eq!(
        (growth.elements_per_unit, finding.holder.as_str()),
        (4.0, "trainer.pages"),
        "{}",
        message(&finding)
    );
    assert!(!message(&finding).contains("places"), "{}", message(&finding));
}

/// Two dicts with the same keys, one of numbers and one of lists.
const CURVES: &str = "\
class Trainer:
    def fit(self):
        sums = {'d': 0.0, 'g': 0.0}
        for batch in batches:
            sums['d'] += self.step(batch)
        for key, value in sums.items():
            self.curves[key].append(value)
        other = self.curves
        other['g'].append(1)
";

#[test]
fn a_key_is_sought_in_the_container_that_has_it() {
    let found = |key: &str| {
        let mut holder = attribute(1, "trainer", "Trainer", "curves");
        let key_step = PathStep { kind: StepKind::Key, name: format!("'{key}'"), type_name: "list".into() };
        holder.path.push(key_step);
        holder.name = key.into();
        let run = Run::of(CURVES).epochs(rising(400 * MB, 10 * MB, 8));
        let run = run.grown(ContainerKind::List, holder, elements(5 * MB / 2, &[Trait::Tensor]), lengths());
        let finding = run.finding();
        (finding.sites[0].line, run.line("self.curves[key]"), run.line("other['g']"))
    };
    let (line, any_key, _) = found("d");
    assert_eq!(line, any_key);
    let (line, _, by_key) = found("g");
    assert_eq!(line, by_key, "through another name of it");
}

#[test]
fn a_figure_that_is_closed_again_is_no_other_place() {
    let source = "\
import matplotlib.pyplot as plt


def closed():
    first = plt.figure()
    plt.close(first)


def kept():
    second = plt.figure()
    second.savefig('a.png')
";
    let mut registry = library(1, "matplotlib._pylab_helpers", "figs");
    registry.path[1].name = "Gcf".into();
    let run = Run::of(source).epochs(rising(400 * MB, 10 * MB, 8));
    let run = run.grown(ContainerKind::Dict, registry, elements(5 * MB / 2, &[Trait::Figure]), lengths());
    let finding = run.traced(1, "second = plt", "kept").traced(1, "first = plt", "closed").finding();
    assert_eq!((finding.sites[0].line, finding.twins.len()), (10, 0), "{finding:#?}");
}

#[test]
fn calls_that_a_mock_records_are_a_class_of_their_own() {
    let recorder = || attribute(1, "trainer", "Trainer", "ious");
    let calls = |name: &str| Contents {
        element_types: vec![(name.into(), 8)],
        ..elements(5 * MB / 2, &[Trait::Tensor])
    };
    let class = |name| leak().grown(ContainerKind::List, recorder(), calls(name), lengths()).finding().class;
    assert_eq!(class("unittest.mock._Call"), LeakClass::CallsRecorded);
    assert_ne!(class("tuple"), LeakClass::CallsRecorded);
}
