//! What is found depends neither on the order and names of files nor on the number of parameters; a cap that was hit is a
//! problem.

use caulk_python::{Analysis, Project, SourceFile};
use caulk_rules::{RULES, check};

const MAIN: &str = "\
import torch
from TRAINER import Tuner

def main():
    model = torch.nn.Linear(3, 3)
    loader = torch.utils.data.DataLoader(range(5), batch_size=3)
    Tuner(model, loader, 30000).train()

if __name__ == '__main__':
    main()
";
const TRAINER: &str = "\
import torch
from GAUGE import Gauge

class Tuner:
    def __init__(self, model, loader, steps):
        self.model = model
        self.loader = loader
        self.steps = steps

    def train(self):
        opt = torch.optim.SGD(self.model.parameters(), lr=0.1)
        ce = torch.nn.CrossEntropyLoss()
        gauge = Gauge()
        it = iter(self.loader)
        for i in range(self.steps):
            opt.zero_grad()
            x, y = next(it)
            loss = ce(self.model(x), y)
            gauge.update(loss)
            loss.backward()
            opt.step()
            print(gauge.mean)
";
const GAUGE: &str = "\
class Gauge:
    def __init__(self, decay=0.9):
        self.decay = decay
        self.mean = 0

    def update(self, v):
        self.mean = self.decay * self.mean + (1 - self.decay) * v
";

fn found(files: Vec<SourceFile>) -> Vec<(String, u32)> {
    let found = check(&Analysis::new(Project::new(files)), RULES);
    found.iter().map(|found| (found.sites[0].text.trim().to_owned(), found.sites[0].line)).collect()
}

const ORDERS: [[usize; 3]; 6] = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];

#[test]
fn files_may_have_any_names() {
    let names = ["alpha", "middle", "zeta"];
    for order in ORDERS {
        let [main, trainer, gauge] = order.map(|at| names[at]);
        let file = |name: &str, text: &str| SourceFile {
            path: format!("{name}.py"),
            text: text.replace("TRAINER", trainer).replace("GAUGE", gauge),
        };
        let found = found(vec![file(main, MAIN), file(trainer, TRAINER), file(gauge, GAUGE)]);
        let carried = found.iter().any(|(text, line)| text.starts_with("self.mean") && *line == 7);
        assert!(carried, "{main} {trainer} {gauge}: {found:?}");
    }
}

#[test]
fn files_may_come_in_any_order() {
    let file = |name: &str, text: &str| SourceFile {
        path: format!("{name}.py"),
        text: text.replace("TRAINER", "trainer").replace("GAUGE", "gauge"),
    };
    let files = [file("main", MAIN), file("trainer", TRAINER), file("gauge", GAUGE)];
    let of = |order: [usize; 3]| found(order.map(|at| files[at].clone()).to_vec());
    for order in ORDERS {
        assert_eq!(of(order), of([0, 1, 2]), "{order:?}");
    }
}

fn running_loss(parameters: usize) -> String {
    let define: Vec<String> = (0..parameters)
        .map(|n| format!("        self.p{n} = torch.nn.Parameter(torch.zeros(3))\n"))
        .collect();
    let define = define.concat();
    let used: Vec<String> = (0..parameters).map(|n| format!(" + self.p{n}")).collect();
    let used = used.concat();
    format!(
        "\
import torch

class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
{define}
    def forward(self, x):
        return x{used}

def main(loader, epochs):
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    crit = torch.nn.CrossEntropyLoss()
    for epoch in range(epochs):
        running = 0.0
        for x, y in loader:
            opt.zero_grad()
            loss = crit(net(x), y)
            loss.backward()
            opt.step()
            running += loss
        print(running / len(loader))
"
    )
}

#[test]
fn a_model_may_have_any_number_of_parameters() {
    for parameters in [1, 3, 4, 8, 64] {
        let file = SourceFile { path: "train.py".into(), text: running_loss(parameters) };
        let found = found(vec![file]);
        assert!(found.iter().any(|(text, _)| text == "running += loss"), "{parameters}: {found:?}");
    }
}

#[test]
fn a_cap_that_was_hit_is_a_problem() {
    let names: Vec<String> = ('a'..='p').map(String::from).collect();
    let each = |line: &dyn Fn(&String) -> String| names.iter().map(line).collect::<String>();
    let before = each(&|name| format!("    {name} = start\n"));
    let step = each(&|name| format!("        {name} = net({name})\n"));
    let sum = names.join(" + ");
    let text = format!(
        "\
import torch

def main(start, batches):
    net = torch.nn.Linear(3, 3)
    total = 0.0
{before}    for _ in range(10000):
{step}        total = ({sum}).sum() + total
    print(total)
"
    );
    let file = SourceFile { path: "train.py".into(), text };
    let analysis = Analysis::new(Project::new([file]));
    let sites = check(&analysis, RULES);
    let carried = sites.iter().any(|found| found.sites[0].text.contains("total ="));
    let noted = analysis.problems().iter().any(|problem| problem.message.contains("more changing variables"));
    assert!(carried || noted, "{:?}", analysis.problems());
}
