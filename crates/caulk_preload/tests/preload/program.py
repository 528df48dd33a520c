"""Allocates known amounts in every kind of frame."""
import ctypes
import os
import sys
import threading

library = ctypes.CDLL(None)
refusal = library.caulk_heap_prepare()
library.caulk_heap_begin(refusal)
MB = 1_000_000
kept = []


def inner():
    return bytearray(20 * MB)  # nested


def outer():
    return inner()


def spread():
    return bytearray(  # several lines
        20
        * MB
    )


def generate():
    yield bytearray(20 * MB)  # generator


async def awaited():
    return bytearray(20 * MB)  # coroutine


async def awaiting():
    return await awaited()


def resumed(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value


class Holder:
    def __init__(self):
        self.data = bytearray(20 * MB)  # init


def work():
    kept.append(bytearray(20 * MB))  # thread


def middle():
    for _ in range(400):
        kept.append(bytearray(100_000))  # middle


def small():
    objects = []
    for number in range(200_000):
        objects.append(b"%0167d" % number)  # small
    return objects


library.malloc.restype = library.realloc.restype = ctypes.c_void_p


def asked():
    return library.malloc(ctypes.c_size_t(20 * MB))  # asked


def shrink(block):
    return library.realloc(ctypes.c_void_p(block), ctypes.c_size_t(15 * MB))  # shrunk


def native_thread():
    # A thread that runs no Python at all: `malloc` itself.
    number = ctypes.c_size_t()
    arguments = ctypes.byref(number), None, ctypes.cast(library.malloc, ctypes.c_void_p), ctypes.c_size_t(20 * MB)
    assert library.pthread_create(*arguments) == 0  # native thread
    assert library.pthread_join(number, None) == 0


def freed():
    for _ in range(300):
        bytearray(1 * MB)  # freed


looks_up = ctypes.pythonapi.PyObject_HasAttrString
looks_up.argtypes = [ctypes.py_object, ctypes.c_char_p]


def looked_up(holder):
    for _ in range(400_000):
        looks_up(holder, b"made_anew_for_each_call")  # looked up


def compare(_):
    codes, offsets = (ctypes.c_size_t * 8)(), (ctypes.c_uint32 * 8)()
    count = library.caulk_heap_walk(codes, offsets, 8)
    frame, known = sys._getframe(), []
    while frame is not None:
        known.append(id(frame.f_code))
        frame = frame.f_back
    assert codes[:count] == known, "frames around a call from C"


if not refusal:
    sorted([1], key=compare)
kept.append(outer())
kept.append(spread())
kept.append(next(generate()))
kept.append(resumed(awaiting()))
kept.append((lambda: bytearray(20 * MB))())  # lambda
kept.append(Holder())
thread = threading.Thread(target=work)
thread.start()
thread.join()
middle()
kept.append(small())
kept.append(shrink(asked()))
native_thread()
freed()
looked_up(kept[3])
library.caulk_heap_snapshot(1)
os._exit(0)
