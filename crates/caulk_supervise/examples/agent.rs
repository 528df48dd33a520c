//! Plays an agent: says what the arguments name over the socket of the run that it finds in its environment.
//!
//! `hello`, `rank=N`, `worker=N` (before `hello`), `epochs=N` (N boundaries with steps), `seconds=N` (N by time),
//! `bytes=HEX` (as they are), `hang-up` (connects anew for what follows), `print=NAME` (a variable),
//! `wait` (for a line on standard input), `finish` (for the supervisor's command to end), `heap=BYTES` (what its heap
//! profile says from now on), `uses=BYTES` (what its sampler has counted of malloc from now on), `kill` (itself).

use std::env;
use std::fs::OpenOptions;
use std::io::{Read, Write, stdin, stdout};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;

use caulk_core::wire::heap::{
    ARENA, HEAP_VARIABLE, LINE_BYTES, LINES, MAGIC, Owner, STACK_INDEX, TOTALS, header, line,
};
use caulk_core::wire::{Boundary, Command, FrameBuffer, Hello, Message, PROTOCOL, SOCKET_VARIABLE, Unit};

fn connect() -> UnixStream {
    UnixStream::connect(env::var_os(SOCKET_VARIABLE).expect("a run")).expect("the supervisor listens")
}

fn say(stream: &mut UnixStream, message: impl Into<Message>) {
    let mut bytes = Vec::new();
    message.into().encode(&mut bytes);
    stream.write_all(&bytes).expect("the supervisor reads");
}

fn say_boundaries(stream: &mut UnixStream, count: u32, unit: Unit) {
    for seq in 0..count {
        let index = u64::from(seq);
        let steps = if unit == Unit::Epoch { index + 1 } else { 0 };
        let boundary = Boundary { seq, index, unit, steps, malloc_bytes: 700 << 20, ..Boundary::default() };
        say(stream, boundary);
    }
}

fn main() {
    let mut stream = connect();
    let (pid, parent) = (std::process::id(), std::os::unix::process::parent_id());
    let mut hello =
        Hello { protocol: PROTOCOL, pid, parent, executable: "/bin/agent".into(), ..Hello::default() };
    for argument in env::args().skip(1) {
        let (what, value) = argument.split_once('=').unwrap_or((&argument, ""));
        let number = || value.parse().expect("a number");
        match what {
            "hello" => say(&mut stream, hello.clone()),
            "rank" => hello.rank = Some(number()),
            "worker" => hello.worker = Some(number()),
            "epochs" => say_boundaries(&mut stream, number(), Unit::Epoch),
            "seconds" => say_boundaries(&mut stream, number(), Unit::Seconds),
            "bytes" => stream.write_all(&decode(value)).expect("the supervisor reads"),
            "hang-up" => stream = connect(),
            "print" => print(&format!("{value}={}", env::var(value).unwrap_or_default())),
            "wait" => drop(stdin().read_line(&mut String::new()).expect("standard input")),
            "finish" => print(&finish(&mut stream)),
            "heap" => hold(number()),
            "uses" => count(number()),
            "kill" => kill(),
            _ => panic!("unknown argument {argument}"),
        }
    }
}

/// Writes a heap profile as the sampler does: one stack, without frames, that holds so much.
fn hold(bytes: u32) {
    let path = env::var_os(HEAP_VARIABLE).expect("a sampled run");
    let memory = OpenOptions::new().write(true).open(path).expect("memory for profiles");
    let put = |at: usize, number: u64| {
        memory.write_all_at(&number.to_ne_bytes(), at as u64).expect("memory for profiles");
    };
    put(header::OWNER, Owner { pid: std::process::id(), start: 0 }.number());
    put(header::WATCHED, 1);
    put(header::ARENA_USED, 8);
    put(header::STACKS, 1);
    put(STACK_INDEX, 1);
    put(ARENA, 0);
    put(TOTALS, bytes.into());
    put(header::MAGIC, MAGIC);
}

/// Adds up what malloc has handed out as the sampler does: two threads, of which one frees what the other one made.
fn count(bytes: u32) {
    let path = env::var_os(HEAP_VARIABLE).expect("a sampled run");
    let memory = OpenOptions::new().write(true).open(path).expect("memory for profiles");
    let put = |at: usize, number: i64| {
        memory.write_all_at(&number.to_ne_bytes(), at as u64).expect("memory for profiles");
    };
    for (index, sum) in [(1, 2 * i64::from(bytes)), (2, -i64::from(bytes))] {
        put(LINES + index * LINE_BYTES + line::BYTES, sum);
        put(LINES + index * LINE_BYTES + line::BLOCKS, sum.signum() * 2 + 1);
    }
    put(header::LINES, 3);
}

fn kill() {
    // SAFETY: a number that names a signal.
    unsafe { libc::raise(libc::SIGKILL) };
}

/// Reason of the command that the supervisor sends.
fn finish(stream: &mut UnixStream) -> String {
    let mut frames = FrameBuffer::default();
    loop {
        let mut buffer = [0; 64];
        let count = stream.read(&mut buffer).expect("the supervisor writes");
        frames.extend(&buffer[..count]);
        if let Some(frame) = frames.next_frame().expect("a whole frame") {
            match Command::decode(&frame).expect("a command") {
                Command::Finish(finish) => return finish.reason,
                Command::Ask(ask) => panic!("asked for {ask:?} without a guard"),
            }
        }
        assert!(count > 0, "the supervisor is gone");
    }
}

fn decode(digits: &str) -> Vec<u8> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| std::str::from_utf8(pair).expect("digits"));
    pairs.map(|pair| u8::from_str_radix(pair, 16).expect("digits")).collect()
}

fn print(text: &str) {
    writeln!(stdout(), "{text}").expect("standard output");
}
