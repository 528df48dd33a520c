//! What an agent says: who it is, where the phases end, what grew, what holds it, which line grew it.

use crate::codec::{DecodeError, Field, codes, records};

codes! {
    /// What one boundary after another counts.
    Unit {
        /// An epoch or another outer loop around the steps.
        #[default]
        Epoch = 0 "epoch",
        /// Optimizer steps (or backward passes, or forwards, where there are none).
        Steps = 1 "steps",
        /// Wall-clock seconds: programs without torch.
        Seconds = 2 "seconds",
    }

    /// What the program was doing when a boundary was cut.
    Phase {
        /// Not known.
        #[default]
        Run = 0 "run",
        /// Between optimizer steps.
        Train = 1 "train",
        /// Model outputs without optimizer steps.
        Validation = 2 "validation",
        /// As validation, said so by the program or its framework.
        Test = 3 "test",
    }

    /// What kind of thing grows.
    ContainerKind {
        /// `list` and subclasses.
        #[default]
        List = 0 "list",
        /// `dict`, `OrderedDict`, `defaultdict`, `Counter` and subclasses.
        Dict = 1 "dict",
        /// `set` and subclasses.
        Set = 2 "set",
        /// `collections.deque`.
        Deque = 3 "deque",
        /// `queue.Queue` and relatives.
        Queue = 4 "queue",
        /// The cache of a `functools.lru_cache` wrapper.
        LruCache = 5 "lru_cache",
        /// One tensor behind which the autograd graph grows; `len` counts graph nodes.
        Graph = 6 "graph",
        /// One tensor or array that is replaced by a larger one; `len` counts bytes.
        Tensor = 7 "tensor",
        /// `bytearray`, `array.array`, ctypes buffers; `len` counts bytes.
        Buffer = 8 "buffer",
    }

    /// What the supervisor asks for.
    AskWish {
        /// Collect, empty caches, give pages back.
        #[default]
        Cleanup = 0 "cleanup",
        /// Save the state of the training.
        Checkpoint = 1 "checkpoint",
        /// Say at which step you are.
        Where = 2 "where",
        /// Stop at a step until you are told to go on, or say that you are past it.
        StopAt = 3 "stop at",
        /// Go on without doing anything.
        Cancel = 4 "cancel",
    }

    /// What came of it.
    AskOutcome {
        /// It is done.
        #[default]
        Done = 0 "done",
        /// It failed.
        Failed = 1 "failed",
        /// The process is at this step, or past the one named.
        At = 2 "at",
        /// It has stopped at the step named.
        Arrived = 3 "arrived",
    }

    /// What one step of a holder path is.
    StepKind {
        /// A module, by its name in `sys.modules`.
        #[default]
        Module = 0 "module",
        /// A running function, by qualified name.
        Function = 1 "function",
        /// A local variable of it.
        Local = 2 "local",
        /// An attribute of an instance.
        Attribute = 3 "attribute",
        /// An attribute of a class.
        ClassAttribute = 4 "class attribute",
        /// A name in a module.
        Global = 5 "global",
        /// `[key]` of a dict.
        Key = 6 "key",
        /// `[index]` of a list, tuple or deque.
        Index = 7 "index",
        /// A variable of a closure.
        Closure = 8 "closure",
        /// A default argument.
        Default = 9 "default",
        /// A bound method's object, a partial's argument, a generator's frame and the like.
        Internal = 10 "internal",
        /// A thread, by its name.
        Thread = 11 "thread",
        /// Held by C code: nothing that Python can reach points to it.
        Native = 12 "held from C",
    }
}

records! {
    /// First message of a process.
    Hello {
        /// [`crate::PROTOCOL`] of the agent.
        protocol: u32,
        /// Process id as the process sees it.
        pid: u32,
        /// Parent's process id.
        parent: u32,
        /// `CLOCK_MONOTONIC` at start-up, in nanoseconds.
        time_ns: u64,
        /// `3.11.7`.
        python: String,
        /// `sys.executable`.
        executable: String,
        /// `sys.argv`, or `sys.orig_argv` where there is one.
        argv: Vec<String>,
        /// `RANK` of a distributed job.
        rank: Option<u32>,
        /// Index of a `DataLoader` worker.
        worker: Option<u32>,
        /// `glibc`, `jemalloc`, ...: who answers for malloc.
        allocator: String,
        /// Version of caulk in the process.
        version: String,
    }

    /// A phase ended; memory as the process's own allocators count it.
    Boundary {
        /// Number of the boundary in this process, from 0; later messages refer to it.
        seq: u32,
        /// `CLOCK_MONOTONIC`, in nanoseconds.
        time_ns: u64,
        /// What `index` counts.
        unit: Unit,
        /// Number of the epoch, step or second at which the boundary lies, from 0.
        index: u64,
        /// Optimizer steps so far.
        steps: u64,
        /// Phase that was running.
        phase: Phase,
        /// Bytes handed out by malloc: `mallinfo2().uordblks + hblkhd`; 0 where it cannot tell, or was not asked
        /// because the answer is dear.
        malloc_bytes: u64,
        /// Free bytes that malloc keeps: `mallinfo2().fordblks`.
        malloc_free_bytes: u64,
        /// `sys.getallocatedblocks()`.
        small_blocks: u64,
        /// Estimate of what those blocks hold, in bytes.
        small_bytes: u64,
        /// Shared memory mapped (`RssShmem`), in bytes.
        shm_bytes: u64,
        /// Resident set size, in bytes.
        rss_bytes: u64,
        /// Pages that are this process's alone and were written to (`Private_Dirty`), in bytes; 0 where that was not read.
        private_bytes: u64,
        /// Pages of a forked process that others still share (`Shared_Dirty`), in bytes, where `private_bytes` was read.
        inherited_bytes: u64,
        /// `torch.cuda.memory_allocated()` over all devices, in bytes.
        cuda_allocated_bytes: u64,
        /// `torch.cuda.memory_reserved()` over all devices, in bytes.
        cuda_reserved_bytes: u64,
        /// Objects seen by the census of this boundary; 0 where none was taken.
        census_objects: u64,
        /// CPU time the agent spent at this boundary, in nanoseconds.
        cost_ns: u64,
        /// Bytes that malloc has for blocks, used and free, those mapped singly left out: `mallinfo2().arena`.
        malloc_heap_bytes: u64,
        /// ... of which lie free at the end of the heap, where they can be given back: `mallinfo2().keepcost`.
        malloc_top_bytes: u64,
        /// Resident pages of mapped files (`RssFile`), in bytes.
        file_bytes: u64,
        /// Threads.
        threads: u32,
        /// Open file descriptors.
        fds: u32,
        /// Free bytes that torch's CUDA allocator cannot give back, since blocks beside them are in use.
        cuda_inactive_bytes: u64,
        /// Times that it emptied its caches because the device had no more memory.
        cuda_retries: u64,
        /// Process whose boundary this is, for one that works for another and takes its boundaries over; 0 for its own.
        of: u32,
    }

    /// One row of a census.
    TypeCount {
        /// Qualified name, with module.
        name: String,
        /// Live objects.
        count: u64,
        /// Their shallow bytes.
        bytes: u64,
    }

    /// The largest and the fastest growing types at a boundary.
    Types {
        /// Boundary of the census.
        boundary: u32,
        /// Rows, by bytes.
        rows: Vec<TypeCount>,
    }

    /// Length of a container (nodes of a graph, bytes of a buffer) that has grown, at a boundary.
    ContainerLen {
        /// Boundary of the census.
        boundary: u32,
        /// Number that this container keeps in this process.
        id: u32,
        /// What it is.
        kind: ContainerKind,
        /// Its type's qualified name.
        type_name: String,
        /// Elements, nodes or bytes.
        len: u64,
        /// Shallow bytes of the container itself.
        shallow_bytes: u64,
    }

    /// One step from a root to a container.
    PathStep {
        /// What the step is.
        kind: StepKind,
        /// Its name: `validate`, `metrics`, `'iou'`, `3`.
        name: String,
        /// Type of the object arrived at.
        type_name: String,
    }

    /// What keeps a container alive.
    Holder {
        /// The container.
        id: u32,
        /// Boundary at which the path was found.
        boundary: u32,
        /// From a root to the container.
        path: Vec<PathStep>,
        /// The path as a person would type it: `trainer.metrics['iou']`.
        expression: String,
        /// For paths from a running function: its qualified name.
        function: String,
        /// ... its file,
        file: String,
        /// ... and the line it was on, from 1.
        line: u32,
        /// Name by which source code must mention the container: the last attribute, variable or key.
        name: String,
        /// Qualified name of the class whose attribute it is, if it is one.
        owner_type: String,
        /// False where the search ended without reaching a root.
        complete: bool,
    }

    /// What of something was made by one stack.
    MadeBy {
        /// The stack: [`HeapStack`].
        stack: u32,
        /// Bytes, estimated from samples.
        bytes: u64,
    }

    /// What is in a container, from a sample of its youngest elements; what its graphs pin, from all of them.
    Contents {
        /// The container.
        id: u32,
        /// Boundary at which it was looked at.
        boundary: u32,
        /// Elements looked at.
        sampled: u32,
        /// ... of which lie in pages that this process has copied since it was forked, where that was looked for.
        copied: u32,
        /// Types of the elements, most frequent first.
        element_types: Vec<(String, u32)>,
        /// Bytes that die with one element, mean of the sample: objects, tensor storages, graphs.
        bytes_per_element: u64,
        /// ... of which tensor and array storages (distinct ones),
        tensor_bytes_per_element: u64,
        /// ... of which are saved for backward by the elements' graphs.
        saved_bytes_per_element: u64,
        /// Bytes of the views themselves, where they pin larger storages.
        viewed_bytes_per_element: u64,
        /// Autograd nodes reachable from the sample.
        graph_nodes: u64,
        /// Saved bytes reachable from the sample, each storage once.
        saved_bytes: u64,
        /// The walk stopped at its bound: figures are "at least".
        truncated: bool,
        /// Node types, most frequent first.
        node_types: Vec<(String, u32)>,
        /// Facts that decide the class: `graph`, `tensor`, `exception`, `function`, `optimizer`, `module`, `figure`,
        /// `log-record`, `record` (plain rows), `scalar`, `tensor-key`, `self-key`, `epoch-key`, `device:cuda`, ...
        traits: Vec<String>,
        /// Tensors with a graph in the whole container, as far as they were gone through.
        tensors: u64,
        /// ... of which so many, the youngest, were walked together for the figures that follow; 0 where none was.
        walked: u64,
        /// Nodes of all their graphs.
        walked_nodes: u64,
        /// Distinct storages that these saved for backward, the tensors' own and parameters left out,
        walked_storages: u64,
        /// ... and their bytes.
        walked_bytes: u64,
        /// Stacks that made those storages, most bytes first, as far as the heap was sampled.
        made_by: Vec<MadeBy>,
        /// Part of `bytes_per_element` that lies on a GPU.
        cuda_bytes_per_element: u64,
    }

    /// An attribute through which an object refers to what leads back to it.
    CycleLink {
        /// Qualified name of the type whose attribute it is, with module.
        owner_type: String,
        /// The attribute.
        attribute: String,
        /// Type of the value.
        target_type: String,
        /// File of the module that defines the type.
        file: String,
        /// Objects of a sample in which it is so.
        count: u32,
    }

    /// A place in code.
    CodePlace {
        /// File.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Qualified name of the function.
        function: String,
    }

    /// What a collection would free at a boundary: objects in cycles that nothing else refers to, made since the first
    /// census.
    Garbage {
        /// Boundary of the census.
        boundary: u32,
        /// Objects.
        objects: u64,
        /// Bytes of the objects and of what they alone keep.
        bytes: u64,
        /// ... of which storages of tensors and arrays.
        tensor_bytes: u64,
        /// There are more: figures are estimates from a part.
        truncated: bool,
        /// `gc.isenabled()`.
        enabled: bool,
        /// `gc.get_freeze_count()`.
        frozen: u64,
        /// `gc.get_threshold()[0]`: objects made until the youngest are looked at.
        threshold: u64,
        /// The types with most bytes.
        types: Vec<TypeCount>,
        /// Attributes that close the cycles, most frequent first.
        links: Vec<CycleLink>,
        /// The user's functions and frames that are part of them.
        places: Vec<CodePlace>,
    }

    /// A line that made a watched container grow.
    TraceHit {
        /// The container.
        id: u32,
        /// File of the line.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Qualified name of the function.
        function: String,
        /// Innermost line of the user's own code on the stack; the same where the line is the user's.
        user_file: String,
        /// ... line, from 1,
        user_line: u32,
        /// ... function.
        user_function: String,
        /// Elements (nodes, bytes) it added while armed.
        growth: u64,
        /// Times it was seen to grow.
        count: u32,
    }

    /// How an armed trace ended.
    TraceState {
        /// Containers that were watched.
        ids: Vec<u32>,
        /// `hit`, `silent`, `refused`.
        state: String,
        /// Reason, for people.
        text: String,
        /// Functions that were watched.
        candidates: u32,
        /// CPU time spent while armed is not known; this is the wall time it was armed, in nanoseconds.
        armed_ns: u64,
    }

    /// A loop of the program that was recognised.
    LoopSite {
        /// What it counts.
        unit: Unit,
        /// File.
        file: String,
        /// Line of the loop, from 1.
        line: u32,
        /// Qualified name of the function.
        function: String,
        /// The loop variable, if one was used.
        variable: String,
        /// `loop`, `dataloader`, `lightning`, `transformers`, `caulk.epoch`.
        source: String,
    }

    /// A line of the program that starts backward passes.
    BackwardSite {
        /// File.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Qualified name of the function.
        function: String,
        /// Calls so far.
        count: u64,
        /// `retain_graph=True`.
        retain_graph: bool,
        /// `create_graph=True`.
        create_graph: bool,
        /// Calls that started with gradients left over from before the last optimizer step.
        stale_gradients: u64,
        /// Calls for which that was looked at.
        checked: u64,
    }

    /// A high-water mark inside an epoch, with who was running.
    Peak {
        /// Boundary before it.
        boundary: u32,
        /// Bytes in use at the peak.
        in_use_bytes: u64,
        /// Bytes in use at the boundary.
        baseline_bytes: u64,
        /// Innermost line of the user's code.
        file: String,
        /// ... line, from 1,
        line: u32,
        /// ... function.
        function: String,
        /// Containers that were full at the peak, described by [`Holder`], [`Contents`] and [`ContainerLen`].
        ids: Vec<u32>,
    }

    /// One line of a stack.
    HeapFrame {
        /// File.
        file: String,
        /// Line, from 1.
        line: u32,
        /// Qualified name of the function; before Python 3.11 its name.
        function: String,
    }

    /// A stack that allocated, read from the process's heap profile.
    HeapStack {
        /// Number that this stack keeps in this process.
        id: u32,
        /// [`crate::heap::stack`].
        flags: u32,
        /// Innermost frame first.
        frames: Vec<HeapFrame>,
    }

    /// What one stack has allocated and not given back, estimated from samples.
    HeapRow {
        /// The stack.
        id: u32,
        /// Bytes.
        bytes: u64,
        /// Blocks.
        blocks: u64,
        /// Standard deviation of the bytes.
        deviation: u64,
    }

    /// The heap profile of a process at a boundary.
    HeapLive {
        /// Boundary.
        boundary: u32,
        /// Mean bytes between samples.
        interval: u64,
        /// Bytes of all stacks.
        bytes: u64,
        /// Standard deviation of them.
        deviation: u64,
        /// The stacks that hold most and grow most, by bytes.
        rows: Vec<HeapRow>,
    }

    /// malloc was asked to give back what it can (`malloc_trim`), because the user wanted that.
    Trim {
        /// Boundary at which it was asked.
        boundary: u32,
        /// Resident bytes before.
        before_bytes: u64,
        /// ... and after.
        after_bytes: u64,
        /// CPU time of the answer, in nanoseconds.
        cost_ns: u64,
    }

    /// A line that made memory on a GPU.
    GpuLine {
        /// The innermost line of the user's code.
        place: CodePlace,
        /// Bytes of it that are still there.
        bytes: u64,
        /// Blocks.
        blocks: u64,
    }

    /// What was made on GPUs between two boundaries and is still there at the second, by torch's own record.
    GpuMade {
        /// Boundary from which on torch recorded.
        from: u32,
        /// ... and at which it was asked.
        to: u32,
        /// Bytes of all lines.
        bytes: u64,
        /// Those with most bytes.
        lines: Vec<GpuLine>,
    }

    /// Threads that run the same, or open files of one kind.
    Kin {
        /// Of files: their name, numbers left out.
        name: String,
        /// Of threads: the outermost function of the user's, and where it is defined.
        place: CodePlace,
        /// How many.
        count: u32,
    }

    /// What threads run and what open files are, at the first boundary and where there are far more of them than before.
    Opened {
        /// Boundary.
        boundary: u32,
        /// Threads that run code of the user's, most first.
        threads: Vec<Kin>,
        /// Open files, most first.
        files: Vec<Kin>,
    }

    /// Something worth one line in the report: a hook that failed, a trace that was not armed.
    Note {
        /// Stable key: `hook-failed`, `tracer-in-use`, `census-skipped`, ...
        code: String,
        /// For people.
        text: String,
    }

    /// Last message of a process that ends in an orderly way.
    Bye {
        /// Optimizer steps.
        steps: u64,
        /// Epochs.
        epochs: u64,
        /// CPU time spent by the agent, in nanoseconds.
        cost_ns: u64,
        /// Longest pause, in nanoseconds.
        longest_pause_ns: u64,
    }

    /// How far a process is that is to be guarded, and how it can save its state: at its first step, and then as often
    /// as half a second allows.
    Standing {
        /// Optimizer steps so far.
        steps: u64,
        /// Epochs that have begun and ended.
        epochs: u64,
        /// By what it can save its state: `caulk.on_checkpoint`, `Lightning`, `Transformers`; empty where by nothing.
        way: String,
        /// It must not be sent SIGUSR1: that means something else there.
        spare_signal: bool,
        /// `torch.cuda.memory_reserved()` over all devices, in bytes.
        cuda_reserved_bytes: u64,
        /// Memory of these devices, in bytes.
        cuda_total_bytes: u64,
    }

    /// What came of a request ([`Ask`]).
    Answer {
        /// Its number.
        id: u32,
        /// What came of it.
        outcome: AskOutcome,
        /// Optimizer steps so far.
        steps: u64,
        /// Resident and reserved GPU memory that came back, in bytes.
        freed_bytes: u64,
        /// The checkpoint that was made, where that is known.
        path: String,
        /// For people: why it failed.
        text: String,
    }

    /// An exception that nobody has caught ends the program.
    Uncaught {
        /// Names of its type and of those that it derives from.
        types: Vec<String>,
        /// Its text, as far as that is plain.
        text: String,
    }

    /// Supervisor to agent: do this at the next boundary.
    Ask {
        /// Number of the request, for its answer.
        id: u32,
        /// What to do.
        wish: AskWish,
        /// For [`AskWish::StopAt`]: the step.
        step: u64,
    }

    /// Supervisor to agent: the run is being ended; say what you have.
    Finish {
        /// Reason, for people.
        reason: String,
    }
}

macro_rules! messages {
    ($(#[$meta:meta])* $name:ident { $($tag:literal $variant:ident,)* }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub enum $name { $(#[doc = concat!("See [`", stringify!($variant), "`].")] $variant($variant),)* }

        impl $name {
            /// Appends the message as one frame.
            pub fn encode(&self, out: &mut Vec<u8>) {
                let start = out.len();
                out.extend_from_slice(&[0; 4]);
                match self {
                    $(Self::$variant(fields) => {
                        out.push($tag);
                        fields.write(out);
                    })*
                }
                let length = (out.len() - start - 4) as u32;
                out[start..start + 4].copy_from_slice(&length.to_le_bytes());
            }

            /// Reads the message in a frame of [`crate::FrameBuffer::next_frame`].
            ///
            /// # Errors
            /// [`DecodeError`] if the frame is truncated, foreign or of a later version.
            pub fn decode(frame: &[u8]) -> Result<Self, DecodeError> {
                let (&tag, mut fields) = frame.split_first().ok_or(DecodeError::Truncated)?;
                match tag {
                    $($tag => Ok(Self::$variant(Field::read(&mut fields)?)),)*
                    _ => Err(DecodeError::UnknownTag(tag)),
                }
            }
        }

        $(impl From<$variant> for $name {
            fn from(fields: $variant) -> Self {
                Self::$variant(fields)
            }
        })*
    };
}

messages! {
    /// What an agent says.
    Message {
        1 Hello,
        2 Boundary,
        3 Types,
        4 ContainerLen,
        5 Holder,
        6 Contents,
        7 TraceHit,
        8 TraceState,
        9 LoopSite,
        10 BackwardSite,
        11 Peak,
        12 Note,
        13 Bye,
        14 HeapStack,
        15 HeapLive,
        16 Garbage,
        17 Trim,
        18 Standing,
        19 Answer,
        20 Uncaught,
        21 GpuMade,
        22 Opened,
    }
}

messages! {
    /// What the supervisor says.
    Command {
        1 Finish,
        2 Ask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::FrameBuffer;

    fn check(message: Message) {
        let mut bytes = Vec::new();
        message.encode(&mut bytes);
        let mut buffer = FrameBuffer::default();
        for byte in &bytes {
            assert_eq!(buffer.next_frame(), Ok(None));
            buffer.extend(&[*byte]);
        }
        let frame = buffer.next_frame().expect("length is small").expect("frame is whole");
        assert_eq!(Message::decode(&frame), Ok(message));
        for cut in 1..frame.len() {
            assert!(Message::decode(&frame[..cut]).is_err(), "cut at {cut}");
        }
    }

    #[test]
    fn every_field_comes_back() {
        check(Message::Boundary(Boundary {
            seq: 7,
            index: u64::MAX,
            unit: Unit::Steps,
            ..Boundary::default()
        }));
        check(Message::Hello(Hello {
            argv: vec!["train.py".into(), "--x=ü".into()],
            rank: Some(3),
            ..Hello::default()
        }));
        check(Message::Contents(Contents {
            node_types: vec![("MulBackward0".into(), 9)],
            truncated: true,
            ..Contents::default()
        }));
        let step = PathStep { kind: StepKind::Local, name: "trainer".into(), type_name: "Trainer".into() };
        check(Message::Holder(Holder { path: vec![step], complete: true, ..Holder::default() }));
    }

    #[test]
    fn an_unknown_tag_can_be_skipped() {
        assert_eq!(Message::decode(&[250, 1, 2]), Err(DecodeError::UnknownTag(250)));
    }

    #[test]
    fn a_foreign_stream_is_refused() {
        let mut buffer = FrameBuffer::default();
        buffer.extend(b"GET / HTTP/1.1");
        assert_eq!(buffer.next_frame(), Err(DecodeError::Invalid("frame length")));
    }

    #[test]
    fn a_false_list_length_does_not_allocate() {
        // Tag of `Types`, boundary 0, then a list of 2^62 rows.
        let frame = [3, 0, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x40];
        assert_eq!(Message::decode(&frame), Err(DecodeError::Truncated));
    }

    #[test]
    fn names_are_stable() {
        for unit in Unit::ALL {
            assert_eq!(Unit::from_name(unit.as_str()), Some(*unit));
        }
        assert_eq!(ContainerKind::from_name("lru_cache"), Some(ContainerKind::LruCache));
    }
}
