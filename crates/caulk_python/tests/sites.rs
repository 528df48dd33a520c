//! Where a name grows: a table of small programs with the sites that are expected, near misses among them.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod file;

use caulk_python::{GrowKind, Holder, Owner};
use file::File;

/// `expected`: lines of `# text` that end in `#! kind`, as `line kind container`.
fn check(name: &str, source: &str, expected: &[&str]) {
    check_of(name, &Owner::Any, source, expected);
}

fn check_of(name: &str, owner: &Owner, source: &str, expected: &[&str]) {
    let file = File::parse("train.py", source);
    assert_eq!(file.problems(), &[], "{source}");
    let found: Vec<String> = file
        .lines()
        .grow_sites_of(name, owner)
        .iter()
        .filter(|site| site.kind.grows())
        .map(|site| {
            let element = if site.element { " element" } else { "" };
            let via = site.via.iter().map(|spot| format!(" via {}", spot.line)).collect::<Vec<_>>().concat();
            format!("{} {:?} {}{element}{via}", site.spot.line, site.kind, site.container)
        })
        .collect();
    assert_eq!(found, expected, "{source}");
}

#[test]
fn every_way_to_grow_a_container_is_known() {
    let source = "\
class Run:
    def step(self, x, k):
        self.xs.append(x)
        self.xs.appendleft(x)
        self.xs.extend([x])
        self.xs.insert(0, x)
        self.xs.add(x)
        self.xs.update(x)
        self.xs.setdefault(k, x)
        self.xs[k] = x
        self.xs[len(self.xs):] = [x]
        self.xs += [x]
        self.xs |= {x}
        self.xs.put(x)
        heapq.heappush(self.xs, x)
        bisect.insort(self.xs, x)
        self.xs = self.xs + [x]
        self.xs = torch.cat([self.xs, x])
        self.xs, y = f(self.xs)
        list.append(self.xs, x)
        self.xs.register_forward_hook(x)
        self.xs.loc[k] = x
        [self.xs.append(v) for v in x]
        g(self.xs.append)
        if (n := self.xs.append(x)): pass
";
    let kinds = [
        "3 Append",
        "4 Append",
        "5 Extend",
        "6 Insert",
        "7 Add",
        "8 Update",
        "9 SetDefault",
        "10 Subscript",
        "11 SliceAssign",
        "12 AugAdd",
        "13 Update",
        "14 Put",
        "15 Heap",
        "16 Insert",
        "17 Rebind",
        "18 Rebind",
        "19 Rebind",
        "20 Append",
        "21 Register",
        "22 Subscript",
        "23 Append",
        "24 Append",
        "25 Append",
    ];
    let expected: Vec<String> = kinds.iter().map(|kind| format!("{kind} self.xs")).collect();
    check("xs", source, &expected.iter().map(String::as_str).collect::<Vec<_>>());
}

#[test]
fn other_names_other_objects_and_cuts_are_no_growth() {
    let source = "\
class Run:
    def __init__(self):
        self.xs = []
        self.xs2 = []
    def step(self, x):
        self.xs2.append(x)
        self.ys.append(self.xs)
        xs2.append(x)
        self.xs.items.append(x)
        self.xs = self.xs[-10:]
        self.xs = [v for v in self.xs if v]
        self.xs = deque(self.xs, maxlen=3)
        self.xs = self.xs.detach()
        self.xs.append
        self.xs.clear()
        print(self.xs, xs_append(x))
        self.xs[1:3].append(x)
        list(self.xs).append(x)
        'self.xs.append(x)'
        # self.xs.append(x)
";
    check("xs", source, &[]);
}

#[test]
fn variables_of_other_functions_are_told_apart_by_owner() {
    let source = "\
xs = []
def a(v):
    xs = []
    xs.append(v)
    def inner():
        xs.append(2)
    return inner
def b(v):
    xs.append(v)
def c(xs, v):
    xs.append(v)
class K:
    xs = []
    def d(self, v):
        self.xs.append(v)
        xs.append(v)
    def e(self, xs):
        [xs.append(1) for xs in self.all]
        f = lambda xs: xs.append(1)
";
    let file = |function: &str| Owner::Function(function.to_owned());
    check_of("xs", &file("a"), source, &["4 Append xs", "6 Append xs"]);
    check_of("xs", &file("a.<locals>.inner"), source, &[]);
    check_of("xs", &file("b"), source, &[]);
    check_of("xs", &file("c"), source, &["11 Append xs"]);
    check_of("xs", &Owner::Module, source, &["9 Append xs", "16 Append xs"]);
    check_of("xs", &Owner::Class("__main__.K".to_owned()), source, &["15 Append self.xs"]);
    check_of("xs", &Owner::Attribute, source, &["15 Append self.xs"]);
    check("self.xs", source, &["15 Append self.xs"]);
}

#[test]
fn attributes_are_told_apart_by_class_and_inherited() {
    let source = "\
class Base:
    def __init__(self):
        self.log = []
class Child(Base):
    def step(self, v):
        self.log.append(v)
        super().log.append(v)
class Other:
    def step(self, v):
        self.log.append(v)
def main(thing, child: Child):
    mine = Other()
    mine.log.append(1)
    thing.log.append(2)
    child.log.append(3)
";
    let class = |name: &str| Owner::Class(name.to_owned());
    let of_child =
        ["6 Append self.log", "7 Append super().log", "14 Append thing.log", "15 Append child.log"];
    check_of("log", &class("Child"), source, &of_child);
    check_of("log", &class("Base"), source, &of_child);
    check_of(
        "log",
        &class("Other"),
        source,
        &["10 Append self.log", "13 Append mine.log", "14 Append thing.log"],
    );
}

#[test]
fn aliases_lead_to_the_container() {
    check(
        "results",
        "class R:\n def f(self, x):\n  out = self.results\n  out.append(x)\n",
        &["4 Append out"],
    );
    check(
        "results",
        "class R:\n def f(self, x):\n  a = b = self.results\n  c = b\n  c += [x]\n",
        &["5 AugAdd c"],
    );
    check(
        "xs",
        "class R:\n def f(self, v):\n  add = self.xs.append\n  for x in v: add(x)\n",
        &["4 Append add"],
    );
    check(
        "xs",
        "class R:\n def __init__(self):\n  self._add = self.xs.append\n def f(self, v):\n  self._add(v)\n",
        &["5 Append self._add"],
    );
    check("xs", "class R:\n def f(self, v):\n  (buf := self.xs).append(v)\n", &["3 Append buf := self.xs"]);
    check(
        "STORE",
        "STORE = {}\nclass R:\n def __init__(self):\n  self.s = STORE\n def f(self, k, v):\n  self.s[k] = v\n",
        &["6 Subscript self.s"],
    );
    check(
        "_xs",
        "class R:\n @property\n def xs(self):\n  return self._xs\n def f(self, v):\n  self.xs.append(v)\n",
        &["6 Append self.xs"],
    );
    check(
        "_xs",
        "class R:\n def store(self):\n  return self._xs\n def f(self, v):\n  self.store().append(v)\n",
        &["5 Append self.store()"],
    );
    check(
        "xs",
        "class R:\n def f(self, v):\n  self.__dict__['xs'].append(v)\n  getattr(self, 'xs').append(v)\n",
        &["3 Append self.__dict__['xs']", "4 Append getattr(self, 'xs')"],
    );
    check("HITS", "HITS = []\ndef f(v):\n  globals()['HITS'].append(v)\n", &["3 Append globals()['HITS']"]);
    check("a", "def f(self, v):\n  for s in (self.a, self.b):\n    s.append(v)\n", &["3 Append s"]);
}

#[test]
fn what_an_alias_was_before_or_is_elsewhere_does_not_count() {
    // Bound anew before the use.
    check("results", "class R:\n def f(self, x):\n  out = self.results\n  out = []\n  out.append(x)\n", &[]);
    // Bound only after it.
    check("results", "class R:\n def f(self, x):\n  out = []\n  out.append(x)\n  out = self.results\n", &[]);
    // In a branch: perhaps.
    check(
        "results",
        "class R:\n def f(self, x):\n  out = []\n  if x: out = self.results\n  out.append(x)\n",
        &["5 Append out"],
    );
    // The loop comes round.
    check(
        "results",
        "class R:\n def f(self, x):\n  out = []\n  for v in x:\n   out.append(v)\n   out = self.results\n",
        &["5 Append out"],
    );
    // Each round binds it first.
    check(
        "results",
        "class R:\n def f(self, x):\n  for v in x:\n   out = []\n   out.append(v)\n   out = self.results\n",
        &[],
    );
    // Binding the alias anew leaves the container as it is.
    check("results", "class R:\n def f(self, x):\n  out = self.results\n  out = out + [x]\n", &[]);
    // An element is not the container.
    check(
        "rows",
        "class R:\n def f(self, x):\n  for row in self.rows:\n   row.append(x)\n  self.rows[0].append(x)\n",
        &["4 Append row element", "5 Append self.rows[0] element"],
    );
    check("rows", "def f(rows, x):\n  for row in other: row.append(x)\n", &[]);
}

#[test]
fn helpers_grow_what_their_callers_hand_over() {
    let source = "\
def put(store, v):
    store.append(v)
def twice(target, v):
    put(target, v)
class R:
    def keep(self, v, into):
        into.append(v)
    @staticmethod
    def add(where, v):
        where.append(v)
    def f(self, v):
        put(self.xs, v)
        put(self.ys, v)
        twice(self.zs, v)
        self.keep(v, into=self.ks)
        R.add(self.ss, v)
        threading.Thread(target=put, args=(self.ts, v)).start()
        functools.partial(put, self.ps)(v)
";
    check("xs", source, &["2 Append store via 12"]);
    check("zs", source, &["2 Append store via 4 via 14"]);
    check("ks", source, &["7 Append into via 15"]);
    check("ss", source, &["10 Append where via 16"]);
    check("ts", source, &["2 Append store via 17"]);
    check("ps", source, &["2 Append store via 18"]);
    check("v", source, &[]);
    let site = &File::parse("h.py", source).lines().grow_sites("xs")[0];
    assert_eq!((site.spot.function.as_str(), site.via[0].function.as_str()), ("put", "R.f"));
    assert_eq!(site.holder, Holder::Parameter);
    assert!(site.aliased);
}

#[test]
fn an_object_that_hands_its_container_to_another() {
    let source = "\
class Sink:
    def __init__(self, rows):
        self.rows = rows
    def push(self, row):
        self.rows.append(row)
class R:
    def __init__(self):
        self.kept = []
        self.sink = Sink(self.kept)
";
    check("kept", source, &["5 Append self.rows via 9"]);
}

#[test]
fn keys_are_names() {
    let source = "\
def main(k, v):
    history = {'train': [], 'val': []}
    history['val'].append(v)
    history['train'].append(v)
    history.setdefault('test', []).append(v)
    history[k].append(v)
    history.get('val').append(v)
    rows = history['val']
    rows.append(v)
    deep['a']['val'].append(v)
    history['n'] += 1
";
    check(
        "val",
        source,
        &[
            "3 Append history['val']",
            "7 Append history.get('val')",
            "9 Append rows",
            "10 Append deep['a']['val']",
        ],
    );
    check(
        "history['val']",
        source,
        &[
            "3 Append history['val']",
            "7 Append history.get('val')",
            "9 Append rows",
            "10 Append deep['a']['val']",
        ],
    );
    check("test", source, &["5 Append history.setdefault('test', [])"]);
    check("a", source, &["10 Append deep['a']['val'] element"]);
    check("n", source, &["11 AugAdd history['n']"]);
    let file = File::parse("k.py", source);
    let made = file.lines().creations("val");
    assert_eq!((made[0].spot.line, made[0].value.as_str()), (2, "[]"));
}

#[test]
fn a_method_of_the_users_own_class_is_not_the_containers() {
    let source = "\
class Gallery:
    def __init__(self):
        self.images = []
    def add(self, image):
        self.images.append(image)
class R:
    def __init__(self):
        self.gallery = Gallery()
    def f(self, image):
        self.gallery.add(image)
        self.seen.add(image)
";
    check("gallery", source, &[]);
    check("seen", source, &["11 Add self.seen"]);
    check("images", source, &["5 Append self.images"]);
}

#[test]
fn values_fed_back_are_rebound() {
    let source = "\
def solve(q0, lr, net):
    q = q0
    h = None
    for x in data:
        q = q - lr * grad(q)
        y, h = net(x, h)
        total = 0
        total += y
        q.data = q
";
    check("q", source, &["5 Rebind q"]);
    check("h", source, &["6 Rebind h"]);
    check("total", source, &["8 AugAdd total"]);
}

#[test]
fn modern_syntax_is_walked() {
    let source = "\
async def run(self, queue):
    async for item in stream():
        async with lock:
            await queue.put(item)
    match item:
        case {'kind': kind, **rest} if kind:
            self.rows.append(rest)
        case [first, *others]:
            others.append(first)
    try:
        self.rows.append(1)
    except* ValueError as error:
        self.rows.append(error)
    else:
        self.rows.append(2)
    finally:
        self.rows.append(3)
    while (chunk := read()):
        self.rows.append(chunk)
    f = lambda v: self.rows.append(v)
    type Pair[T] = tuple[T, T]
    def inner[T](x: T) -> T:
        nonlocal queue
        self.rows.append(x)
    print(f'{self.rows.append(4)}')
    return [[self.rows.append(b) for b in a] for a in self.rows]
";
    let lines = [7, 11, 13, 15, 17, 19, 20, 24, 25, 26];
    let expected: Vec<String> = lines.iter().map(|line| format!("{line} Append self.rows")).collect();
    check("rows", source, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    check("queue", source, &["4 Put queue"]);
    check("others", source, &["9 Append others"]);
    let file = File::parse("m.py", source);
    let conditions = |line| file.lines().grows_at(line)[0].conditions.join(" & ");
    assert_eq!(conditions(7), "case {'kind': kind, **rest}");
    assert_eq!(conditions(13), "except ValueError");
    assert_eq!(conditions(19), "chunk := read()");
}

#[test]
fn a_site_tells_its_surroundings() {
    let source = "\
class Trainer(pl.LightningModule):
    @torch.no_grad()
    def validate(self, loader, debug=False):
        for i, batch in enumerate(loader):
            if i % 10 == 0 and debug:
                self.rows.append(
                    (i, batch['loss']),
                )
            elif i: self.cache[i, batch.key] = batch
            else:
                self.rows.append(None)
";
    let file = File::parse("train.py", source);
    let sites = file.lines().grow_sites("rows");
    let first = &sites[0];
    assert_eq!((first.spot.line, first.spot.end_line, first.spot.column), (6, 8, 17));
    assert_eq!(first.spot.text, "self.rows.append(");
    assert_eq!(first.spot.function, "Trainer.validate");
    assert_eq!(first.conditions, ["i % 10 == 0 and debug"]);
    assert!(first.no_grad);
    let value = first.value.as_ref().unwrap();
    assert_eq!((value.text.as_str(), value.start.line, value.start.column), ("(i, batch['loss'])", 7, 21));
    assert_eq!(value.names, ["i", "batch"]);
    assert_eq!(sites[1].conditions, ["not (i % 10 == 0 and debug or i)"]);
    let cache = &file.lines().grow_sites("cache")[0];
    assert_eq!((cache.key.as_deref(), cache.spot.column), (Some("i, batch.key"), 21));
    assert_eq!(file.lines().loops_at(7)[0].iter, "enumerate(loader)");
    assert_eq!(file.lines().loops_at(7)[0].target, "i, batch");
    assert_eq!(file.lines().loops_at(2), []);
}

#[test]
fn lines_belong_to_functions() {
    let source = "\
import functools
class Probe:
    items = []
    @functools.lru_cache(maxsize=None)
    def make(self, x):
        def hook(file, output):
            self.records.append(output)
        return hook
    def one(self): return 1
x = 1

";
    let file = File::parse("p.py", source);
    let expected = [
        (1, "<module>"),
        (2, "<module>"),
        (3, "<module>"),
        (4, "Probe.make"),
        (5, "Probe.make"),
        (6, "Probe.make.hook"),
        (7, "Probe.make.hook"),
        (8, "Probe.make"),
        (9, "Probe.one"),
        (10, "<module>"),
        (11, "<module>"),
        (99, "<module>"),
    ];
    for (line, function) in expected {
        assert_eq!(file.lines().function_at(line), function, "line {line}");
        if let Some(statement) = file.lines().statement_at(line) {
            assert_eq!(statement.spot.function, function, "statement of line {line}");
        }
    }
    let cache = file.lines().decorated("Probe.make").unwrap();
    assert_eq!((cache.spot.line, cache.decorator.as_str()), (4, "functools.lru_cache(maxsize=None)"));
    assert_eq!((cache.maxsize.as_deref(), cache.method), (Some("None"), true));
    assert_eq!(cache.spot.function, "Probe.make");
    assert_eq!(file.lines().decorated("Probe.one"), None);
    assert_eq!(file.lines().decorated("make").map(|found| found.spot.line), Some(4));
}

#[test]
fn statements_are_tight() {
    let source = "\
for x in xs: out.append(x)
a = 1; b.append(2); c = 3
if (very
    and long):
    pass
with open(p) as f, g() as h:
    y = (
        1,
        2)
";
    let file = File::parse("s.py", source);
    let at = |line: u32| {
        let found = file.lines().statement_at(line).unwrap();
        (found.spot.line, found.spot.end_line, found.spot.column, found.grow.map(|site| site.container))
    };
    assert_eq!(at(1), (1, 1, 14, Some("out".to_owned())));
    assert_eq!(at(2), (2, 2, 8, Some("b".to_owned())));
    assert_eq!(at(4), (3, 4, 1, None));
    assert_eq!(at(6), (6, 6, 1, Some("f".to_owned())));
    assert_eq!(at(8), (7, 9, 5, Some("y".to_owned())));
    assert_eq!(file.lines().statement_at(20), None);
}

#[test]
fn calls_come_with_their_arguments() {
    let source = "\
def train(loss, layer):
    loss.backward(retain_graph=True)
    handle = layer.register_forward_hook(f)
    (a + b).sum().backward(**options)
    fig, ax = plt.subplots(1, 2, figsize=(3, 4))
    backward = 1
";
    let file = File::parse("c.py", source);
    let backward = file.lines().calls("backward");
    assert_eq!(backward.len(), 2);
    assert_eq!(
        (backward[0].callee.as_str(), backward[0].keyword("retain_graph")),
        ("loss.backward", Some("True"))
    );
    assert_eq!(backward[1].callee, "(a + b).sum().backward");
    assert_eq!(backward[1].keyword(""), Some("options"));
    assert_eq!(file.lines().calls("register_forward_hook")[0].bound_to.as_deref(), Some("handle"));
    assert_eq!(file.lines().calls("subplots")[0].arguments, ["1", "2"]);
    assert_eq!(file.lines().calls("figure"), []);
}

#[test]
fn creations_come_with_their_bound() {
    let source = "\
LIMIT = 5
class A:
    shared: list = []
    def __init__(self, n):
        self.q = queue.Queue()
        self.d = deque(maxlen=n)
        self.p = queue.Queue(maxsize=0)
        self.r, self.s = [], deque([], LIMIT)
    def reset(self):
        self.q = queue.Queue(10)
";
    let file = File::parse("c.py", source);
    let made = |name: &str| {
        let found = file.lines().creations(name);
        found.iter().map(|made| (made.spot.line, made.value.clone(), made.bound.clone())).collect::<Vec<_>>()
    };
    let line =
        |line: u32, value: &str, bound: Option<&str>| (line, value.to_owned(), bound.map(str::to_owned));
    assert_eq!(made("q"), [line(5, "queue.Queue()", None), line(10, "queue.Queue(10)", Some("10"))]);
    assert_eq!(made("self.d"), [line(6, "deque(maxlen=n)", Some("n"))]);
    assert_eq!(made("p"), [line(7, "queue.Queue(maxsize=0)", None)]);
    assert_eq!(made("s"), [line(8, "deque([], LIMIT)", Some("LIMIT"))]);
    assert_eq!(made("shared"), [line(3, "[]", None)]);
    assert_eq!(made("nothing"), []);
}

#[test]
fn columns_count_characters_and_no_byte_order_mark() {
    let source = "\u{feff}größe.append('ü', ü); 名前.append(x)\r\n\tdone\r\n";
    let file = File::parse("u.py", source);
    let sites = file.lines().grow_sites("größe");
    assert_eq!((sites[0].spot.line, sites[0].spot.column), (1, 1));
    let value = sites[0].value.as_ref().unwrap();
    assert_eq!((value.start.column, value.end.column), (14, 17));
    let other = &file.lines().grow_sites("名前")[0];
    assert_eq!(other.spot.column, 23);
    assert_eq!(other.spot.text, "größe.append('ü', ü); 名前.append(x)");
    assert_eq!(file.lines().line(2), Some("\tdone"));
    assert_eq!(file.problems().len(), 1, "an unexpected indent: {:?}", file.problems());
}

#[test]
fn broken_source_gives_what_can_be_said() {
    let source = "\
class A:
    def f(self, x):
        self.xs.append(x)
        if x ==
        self.ys.append((x)
    def g(self):
        self.xs.append(
";
    let file = File::parse("broken.py", source);
    let problem = &file.problems()[0];
    assert_eq!((problem.file.as_str(), problem.line), ("broken.py", Some(4)), "{problem:?}");
    let lines: Vec<u32> = file.lines().grow_sites("xs").iter().map(|site| site.spot.line).collect();
    assert!(lines.contains(&3), "{lines:?}");
    assert_eq!(file.lines().function_at(3), "A.f");
    assert_eq!(file.lines().grow_sites("xs")[0].kind, GrowKind::Append);
}

#[test]
fn a_context_variable_grows_where_it_is_bound_to_more_than_it_was() {
    let source = "\
def traced(value):
    TRACE.set(TRACE.get() + (value,))
    TRACE.set((*TRACE.get(), value))
    TRACE.set(())
    TRACE.set(OTHER.get() + (value,))
    gauge.set(value)
";
    check("TRACE", source, &["2 Rebind TRACE", "3 Rebind TRACE"]);
}

#[test]
fn calls_say_what_they_are_given_and_who_gives_it_back() {
    let source = "\
with open(
    'a.bin') as f: pass
stack.enter_context(open(f'{folder}/b.bin'))
kept = open(
    'c.bin', mode)
threading.Thread(
    target=self.write, args=(jobs,)).start()
";
    let file = File::parse("calls.py", source);
    let calls = file.lines().calls("open");
    let managed: Vec<bool> = calls.iter().map(|call| call.managed).collect();
    assert_eq!(managed, [true, true, false]);
    let texts: Vec<&str> = calls.iter().flat_map(|call| &call.texts).map(String::as_str).collect();
    assert_eq!(texts, ["a.bin", "{}/b.bin", "c.bin"]);
    assert_eq!(file.lines().calls("Thread")[0].mentions, ["self", "write", "jobs"]);
}

#[test]
fn statements_say_what_they_bind_and_whose_functions_they_call() {
    let source = "\
import torch.nn.functional as F
a, self.b = f(x)
d['k'] = 1
c += F.relu(x).clone()
print(c == 1, total=c)
";
    let file = File::parse("binds.py", source);
    let binds = |line| file.lines().statement_at(line).map(|found| found.binds);
    assert_eq!(binds(2), Some(vec!["a".to_owned(), "self.b".to_owned()]));
    assert_eq!([3, 4, 5].map(binds), [const { Some(Vec::new()) }; 3]);
    assert_eq!(file.lines().libraries_at(4), ["torch"]);
    assert_eq!(file.lines().called_at(4), ["relu", "clone"]);
    assert!(file.lines().libraries_at(5).is_empty());
}
