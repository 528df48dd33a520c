#!/bin/sh
# Linker of `caulk-clip` for `cargo xtask`: links as ever, and leaves the program's own code as one object beside it, so that it can
# be linked again with another FFmpeg. rustc is done with optimizing across crates here: FFmpeg is in the library of its bindings
# alone.
set -eu
cc "$@"
program= previous=
for word in "$@"; do
    [ "$previous" = -o ] && program=$word
    previous=$word
done
for word in "$@"; do
    shift
    case $word in
    *libffmpeg_sys_next*.rlib) ;;
    *.o | *.rlib) set -- "$@" "$word" ;;
    esac
done
ld --relocatable --strip-debug -o "$program.o" "$@"
