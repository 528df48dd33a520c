#!/bin/sh
# Links `caulk-clip` with an FFmpeg that you have built: relink.sh PREFIX [PROGRAM]
#
# PREFIX is what FFmpeg's `./configure --prefix` was given, with static libraries in PREFIX/lib; BUILD.md says how the one was built
# that is in the program now. PROGRAM is the file to write: put it in the place of `caulk-clip`.
set -eu
here=$(dirname "$0")
prefix=${1:?which FFmpeg? relink.sh PREFIX [PROGRAM]}
program=${2:-caulk-clip}
case $program in */*) ;; *) program=./$program ;; esac
"${CC:-cc}" -pie -o "$program" "$here/caulk-clip.o" -L"$prefix/lib" \
    -Wl,-Bstatic -lavformat -lavcodec -lswscale -lavutil -Wl,-Bdynamic \
    -Wl,--gc-sections -Wl,-z,relro,-z,now -lm -lpthread -ldl
"$program" --version
