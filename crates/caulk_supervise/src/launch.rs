//! Starts the command: the user's environment but for what injection needs, everything else inherited.

use std::env;
use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use camino::{Utf8Path, Utf8PathBuf};
use caulk_core::wire::board::BOARD_VARIABLE;
use caulk_core::wire::heap::{HEAP_VARIABLE, INTERVAL_VARIABLE, PRECISE_INTERVAL};
use caulk_core::wire::{RUN_VARIABLE, SETTINGS_VARIABLE, SOCKET_VARIABLE};

use crate::hard::{Entry, Prepared};
use crate::overlay::{Holder, Joining};
use crate::signals::Before;
use crate::socket::Runtime;
use crate::{LaunchError, Options};

/// Where Python looks for modules first; the injected folder goes before what the user has set.
pub(crate) const PYTHON_PATH: &str = "PYTHONPATH";

/// Folder in the package that holds nothing but what is injected.
pub(crate) const INJECTED: &str = "_inject";

/// What the command finds in its environment that the user did not set.
pub(crate) type Variables = Vec<(&'static str, OsString)>;

/// Libraries that the loader loads before a program's own.
const PRELOAD: &str = "LD_PRELOAD";

/// The address sanitizer ends programs in which another library is loaded before its own, unless it is told not to look.
const SANITIZER: (&str, &str) = ("ASAN_OPTIONS", "verify_asan_link_order=0");

/// Shared memory for the command's processes, as paths that open it.
pub(crate) struct Memory<'a> {
    /// Where the heap sampler is to write.
    pub(crate) heap: Option<&'a str>,
    /// Where training processes say how far they are.
    pub(crate) board: Option<String>,
}

/// Variables for the command; without a package only the mark of the run.
pub(crate) fn variables(options: &Options, runtime: &Runtime, memory: &Memory<'_>) -> Variables {
    let mut variables = vec![(RUN_VARIABLE, runtime.mark().into())];
    let (Some(package), Some(socket)) = (&options.package, runtime.socket()) else {
        return variables;
    };
    let package = speakable(package, runtime);
    let parent = package.parent().unwrap_or(Utf8Path::new("/"));
    let mut settings = options.agent_settings.trim_matches(';').to_owned();
    if !settings.is_empty() {
        settings.push(';');
    }
    if let Some(guard) = &options.guard {
        settings.push_str("guard=");
        settings.push_str(&guard.run);
        settings.push(';');
    }
    settings.push_str("package=");
    settings.push_str(parent.as_str());
    variables.push((SETTINGS_VARIABLE, settings.into()));
    variables.push((SOCKET_VARIABLE, socket.as_str().into()));
    variables.push((PYTHON_PATH, prefixed(&package.join(INJECTED), env::var_os(PYTHON_PATH))));
    if let Some(board) = &memory.board {
        variables.push((BOARD_VARIABLE, board.into()));
    }
    if let (Some(sampler), Some(heap)) = (&options.sampler, memory.heap) {
        let sampler = loadable(sampler, runtime);
        variables.push((PRELOAD, prefixed(&sampler, env::var_os(PRELOAD))));
        if options.precise {
            variables.push((INTERVAL_VARIABLE, PRECISE_INTERVAL.to_string().into()));
        }
        let (name, option) = SANITIZER;
        variables.push((name, prefixed(Utf8Path::new(option), env::var_os(name))));
        variables.push((HEAP_VARIABLE, heap.into()));
    }
    variables
}

/// The library under a name without the characters that separate entries for the loader.
fn loadable(library: &Utf8Path, runtime: &Runtime) -> Utf8PathBuf {
    let folder = runtime.folder().filter(|_| library.as_str().contains([':', ' ', '\t', '\n']));
    match folder.map(|folder| folder.join("libcaulk_preload.so")) {
        Some(link) if symlink(library, &link).is_ok() => link,
        _ => library.to_owned(),
    }
}

/// The path before the user's own list, which stays as it is. An empty entry would mean the working directory.
fn prefixed(folder: &Utf8Path, list: Option<OsString>) -> OsString {
    let mut path = OsString::from(folder.as_str());
    if let Some(list) = list.filter(|list| !list.is_empty()) {
        path.push(":");
        path.push(list);
    }
    path
}

/// The package under a name without the characters that separate entries: a link where its own has some.
fn speakable(package: &Utf8Path, runtime: &Runtime) -> Utf8PathBuf {
    let folder = runtime.folder().filter(|_| package.as_str().contains([':', ';']));
    match folder.map(|folder| folder.join("caulk")) {
        Some(link) if symlink(package, &link).is_ok() => link,
        _ => package.to_owned(),
    }
}

/// Starts the command, inside the hard limit if there is one.
///
/// # Errors
/// [`LaunchError`] with what a shell user expects: not found, not executable, or what the system said.
pub(crate) fn spawn(
    options: &Options,
    variables: &Variables,
    before: Before,
    limit: Option<&mut Prepared>,
    holder: Option<&Holder>,
) -> Result<Child, LaunchError> {
    let program = options.command.first().ok_or(LaunchError::NoCommand)?;
    let (words, entry) = match limit {
        Some(limit) => (limit.words(&options.command), limit.entry()),
        None => (options.command.clone(), Entry::default()),
    };
    if words.first() != Some(program) && find(program, options.directory.as_deref()).is_none() {
        // What starts it in its place would say so in words of its own.
        return Err(explain(program, options.directory.as_deref(), io::ErrorKind::NotFound.into()));
    }
    let (first, arguments) = words.split_first().ok_or(LaunchError::NoCommand)?;
    let mut command = Command::new(first);
    command.args(arguments).envs(variables.iter().map(|(name, value)| (name, value)));
    if let Some(directory) = &options.directory {
        command.current_dir(directory);
    }
    command.envs(options.environment.iter().map(|(name, value)| (name, value)));
    if let Some(streams) = &options.streams {
        let open = |path: &Utf8Path| {
            std::fs::File::create(path)
                .map_err(|source| LaunchError::System { what: "keep the command's output", source })
        };
        command.stdin(Stdio::null()).stdout(open(&streams.output)?).stderr(open(&streams.error)?);
    }
    let directory = options.directory.as_deref().unwrap_or(Utf8Path::new("."));
    let joining = holder.map(|holder| holder.joining(directory)).transpose();
    let joining =
        joining.map_err(|source| LaunchError::System { what: "name the command's directory", source })?;
    let prepare = move || {
        before.restore_in_child()?;
        entry.enter()?;
        joining.as_ref().map_or(Ok(()), Joining::enter)
    };
    // SAFETY: the closure runs after fork and calls async-signal-safe functions alone.
    unsafe { command.pre_exec(prepare) };
    command.spawn().map_err(|source| explain(program, options.directory.as_deref(), source))
}

/// Why it did not start. A script whose interpreter is missing is "not found" for the system, too.
fn explain(program: &OsStr, directory: Option<&Utf8Path>, source: io::Error) -> LaunchError {
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        let source = match std::fs::read_dir(directory) {
            Err(reason) => reason,
            Ok(_) => source,
        };
        return LaunchError::Directory { path: directory.to_owned(), source };
    }
    let command = program.to_string_lossy().into_owned();
    let file = find(program, directory);
    match source.kind() {
        io::ErrorKind::NotFound if file.is_none() => {
            let hint = script_hint(&command, directory);
            LaunchError::NotFound { command, source, hint }
        }
        io::ErrorKind::NotFound => {
            let hint = Some("hint: its first line names an interpreter that does not exist".into());
            LaunchError::NotExecutable { command, source, hint }
        }
        _ if is_executable_failure(&source) => {
            let hint = executable_hint(&command);
            LaunchError::NotExecutable { command, source, hint }
        }
        _ => LaunchError::System { what: "start the command", source },
    }
}

/// The file that the command means, as `execvp` looks for it.
fn find(program: &OsStr, directory: Option<&Utf8Path>) -> Option<std::path::PathBuf> {
    let below = |path: &Path| match directory {
        Some(directory) => directory.as_std_path().join(path),
        None => path.to_path_buf(),
    };
    if Path::new(program).components().count() > 1 || program.as_encoded_bytes().contains(&b'/') {
        return Some(below(Path::new(program))).filter(|path| path.exists());
    }
    let list = env::var_os("PATH")?;
    env::split_paths(&list).map(|folder| below(&folder).join(program)).find(|path| path.is_file())
}

/// Errors of `execve` about the file itself, not about the system's means.
fn is_executable_failure(error: &io::Error) -> bool {
    const ABOUT_THE_FILE: [i32; 8] = [
        libc::EACCES,
        libc::EPERM,
        libc::ENOEXEC,
        libc::EISDIR,
        libc::ENOTDIR,
        libc::ELOOP,
        libc::ETXTBSY,
        libc::ELIBBAD,
    ];
    error.raw_os_error().is_some_and(|code| ABOUT_THE_FILE.contains(&code))
}

/// For a command that is a Python program in the directory.
fn script_hint(command: &str, directory: Option<&Utf8Path>) -> Option<String> {
    let file = directory.unwrap_or(Utf8Path::new(".")).join(command);
    (is_python(command) && file.is_file()).then(|| python_hint(command))
}

fn executable_hint(command: &str) -> Option<String> {
    if is_python(command) {
        return Some(python_hint(command));
    }
    let metadata = std::fs::metadata(command).ok()?;
    if metadata.is_dir() {
        return Some("hint: it is a directory".into());
    }
    (metadata.permissions().mode() & 0o111 == 0).then(|| format!("hint: `chmod +x {}`", quoted(command)))
}

fn is_python(command: &str) -> bool {
    Utf8Path::new(command).extension() == Some("py")
}

fn python_hint(command: &str) -> String {
    format!("hint: `caulk run -- python {}`", quoted(command))
}

/// As a shell takes it.
fn quoted(word: &str) -> String {
    shlex::try_quote(word).map_or_else(|_| word.to_owned(), std::borrow::Cow::into_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: Option<&str>, expected: &str) {
        assert_eq!(prefixed(Utf8Path::new("/p/_inject"), list.map(OsString::from)), expected);
    }

    #[test]
    fn the_users_path_is_kept_behind() {
        check(None, "/p/_inject");
        check(Some(""), "/p/_inject");
        check(Some("/a:/b"), "/p/_inject:/a:/b");
        check(Some("/a:"), "/p/_inject:/a:");
    }
}
