"""Java's methods as values, so that a loop over a batch runs inside Java without Java source code of our own.

A method handle is a reference to one Java method. Handles are chained into a function (build the query, search, take
the hits), and a Java stream applies that function to every element of a list. ``MethodHandleProxies`` turns a handle into
the ``Function`` that a stream needs. The class of that object has no name that pyjnius can use, so it must never cross to
Python: the handles below create it and pass it to the stream in one call.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache

import numpy as np
from numpy.typing import NDArray

from nlp_retrieval.core.processes import Lock
from nlp_retrieval.retrievers.pyserini.jvm import Java, java_class

_PRIMITIVES = {"int": "Integer", "long": "Long", "float": "Float", "void": "Void"}
_STREAM, _INTS = "java.util.stream.Stream", "java.util.stream.IntStream"
_OBJECT, _HANDLE = "java.lang.Object", "java.lang.invoke.MethodHandle"
_POOL, _TASK = "java.util.concurrent.ForkJoinPool", "java.util.concurrent.ForkJoinTask"

calling = Lock()
"""Must be held around all calls of Java, because pyjnius stores the object of a method call where all threads share it."""

_pools: dict[tuple[str, int], Java] = {}


@cache
def type_of(name: str) -> Java:
    """Return a Java type by name: a class, an array in Java's notation (``[I``), or ``int``, ``float``, ``void``."""
    if name in _PRIMITIVES:
        return java_class(f"java.lang.{_PRIMITIVES[name]}").TYPE
    return java_class("java.lang.Class").forName(name)


@cache
def signature(returns: str, *takes: str) -> Java:
    """Return a Java method type."""
    method_type = java_class("java.lang.invoke.MethodType")
    if not takes:
        return method_type.methodType(type_of(returns))
    return method_type.methodType(type_of(returns), [type_of(name) for name in takes])


@cache
def method(owner: str, name: str, returns: str, *takes: str) -> Java:
    """Return a handle of an instance method; its first argument is the object."""
    return _lookup().findVirtual(type_of(owner), name, signature(returns, *takes))


@cache
def static(owner: str, name: str, returns: str, *takes: str) -> Java:
    """Return a handle of a static method."""
    return _lookup().findStatic(type_of(owner), name, signature(returns, *takes))


@cache
def constructor(owner: str, *takes: str) -> Java:
    """Return a handle that creates objects of a class."""
    return _lookup().findConstructor(type_of(owner), signature("void", *takes))


@cache
def getter(owner: str, field: str, holds: str) -> Java:
    """Return a handle that reads a field."""
    return _lookup().findGetter(type_of(owner), field, type_of(holds))


def constant(holds: str, value: Java) -> Java:
    """Return a handle that takes nothing and returns ``value``."""
    return _handles().constant(type_of(holds), value)


def chain(first: Java, *then: Java) -> Java:
    """Return the handle that feeds the result of each handle to the next."""
    for following in then:
        first = _handles().filterReturnValue(first, following)
    return first


def fill(handle: Java, position: int, filler: Java) -> Java:
    """Return ``handle`` with one argument computed by another handle, whose own arguments take its place."""
    return _handles().collectArguments(handle, position, filler)


def join_arguments(handle: Java, returns: str, takes: str, copies: int) -> Java:
    """Return a handle of one argument that passes it to all ``copies`` arguments of ``handle``."""
    return _handles().permuteArguments(handle, signature(returns, takes), *[0] * copies)


def call(handle: Java, *arguments: Java) -> Java:
    """Invoke a handle."""
    return handle.invokeWithArguments(java_class("java.util.Arrays").asList(*arguments))


def java_list(texts: Sequence[str]) -> Java:
    """Copy strings to Java in one call; lone surrogates, which cannot be encoded, become U+FFFD."""
    arrays = java_class("java.util.Arrays")
    try:
        return arrays.asList(*texts)
    except UnicodeEncodeError:
        return arrays.asList(*(text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") for text in texts))


def apply_to_all(values: Java, function: Java, threads: int) -> Java:
    """Start applying a handle to each element of a Java list; the task's result is the list of its results."""
    mapped = call(_bridge("map"), values.stream() if threads == 1 else values.parallelStream(), function)
    # a parallel stream runs in the pool of the thread that asks for its result
    return submit(pool("search", threads), method(_STREAM, "toList", "java.util.List").bindTo(mapped))


def apply_to_one(values: Java, function: Java) -> Java:
    """Apply a handle to the one element of a Java list, in this thread, and return its result."""
    return function.invokeWithArguments(values)


def listed(function: Java, returns: str) -> Java:
    """Return a handle like ``function``, whose result, of type ``returns``, comes as a list of that alone."""
    single = static("java.util.Collections", "singletonList", "java.util.List", _OBJECT)
    return chain(function, single.asType(signature("java.util.List", returns)))


def for_each_index(count: int, action: Java) -> Java:
    """Return a handle without arguments that runs ``action`` for 0, 1, ... ``count`` - 1, in that order."""
    numbers = java_class(_INTS).range(0, count)
    run = _by("forEach", action).bindTo(numbers)
    return run.asType(signature(_OBJECT))


def submit(to: Java, task: Java) -> Java:
    """Start a handle without arguments in a pool, as a task to :func:`wait` for."""
    return call(_bridge("submit"), to, task)


def wait(task: Java) -> None:
    """Wait for a task without holding the lock, so that other threads can call Java and Ctrl-C works."""
    pause = 5e-5
    while True:
        with calling:
            if task.isDone():
                return
        time.sleep(pause)
        pause = min(2e-3, pause * 1.2)


def pool(use: str, threads: int) -> Java:
    """Return the pool of this many threads for one use; they are daemons, and end when idle."""
    with calling:
        if (use, threads) not in _pools:
            _pools[use, threads] = java_class(_POOL)(threads)
        return _pools[use, threads]


def lengths(arrays: Java, array_type: str) -> NDArray[np.int64]:
    """Return the length of each array in a Java list of arrays."""
    return np.array(call(_lengths(array_type), arrays), np.int64)


def columns(arrays: Java, most: int, fields: Java) -> NDArray[np.int32]:
    """Copy two int fields of all objects in a Java list of arrays to Python, at once.

    Args:
        arrays: a Java list of arrays of objects.
        most: how many objects there may be in all.
        fields: what :func:`two_columns` returned.

    Returns:
        ``[2, objects]``.
    """
    memory = java_class("java.nio.ByteBuffer").allocate(8 * most)
    memory.order(java_class("java.nio.ByteOrder").LITTLE_ENDIAN)
    numbers = memory.asIntBuffer()
    call(fields, numbers, arrays)
    return np.frombuffer(memory.array().tostring(), "<i4")[: numbers.position()].reshape(2, -1)


def two_columns(array_type: str, left_column: Java, right_column: Java) -> Java:
    """Return a handle of a buffer of ints and a Java list of arrays of objects, which appends one field of all, then the other.

    Args:
        array_type: the type of each array.
        left_column: a handle from an object to an int.
        right_column: as ``left_column``.
    """
    append = fill(method("java.nio.IntBuffer", "put", "java.nio.IntBuffer", "[I"), 1, method(_INTS, "toArray", "[I"))
    spread = _by("flatMap", _spread(array_type))
    first, second = (
        fill(append, 1, chain(_streamed(), spread, _by("mapToInt", field))) for field in (left_column, right_column)
    )
    buffer, lists = "java.nio.IntBuffer", "java.util.List"
    return _handles().permuteArguments(fill(second, 0, first), signature(buffer, buffer, lists), 0, 1, 1)


@cache
def _lengths(array_type: str) -> Java:
    length = _handles().arrayLength(type_of(array_type))
    return chain(_streamed(), _by("mapToInt", length), method(_INTS, "toArray", "[I"))


@cache
def _streamed() -> Java:
    return method("java.util.List", "stream", _STREAM)


def _by(name: str, function: Java) -> Java:
    """Return a bridge that has its function."""
    return fill(_bridge(name), 1, constant(_HANDLE, function))


@cache
def _spread(array_type: str) -> Java:
    return static("java.util.Arrays", "stream", _STREAM, "[Ljava.lang.Object;").asType(signature(_STREAM, array_type))


_BRIDGES = {
    "map": (_STREAM, "map", _STREAM, "java.util.function.Function"),
    "flatMap": (_STREAM, "flatMap", _STREAM, "java.util.function.Function"),
    "mapToInt": (_STREAM, "mapToInt", _INTS, "java.util.function.ToIntFunction"),
    "forEach": (_INTS, "forEach", "void", "java.util.function.IntConsumer"),
    "submit": (_POOL, "submit", _TASK, "java.util.concurrent.Callable"),
}


@cache
def _bridge(name: str) -> Java:
    """Return a handle of a method that needs a functional interface, and takes a method handle instead."""
    owner, method_name, returns, interface = _BRIDGES[name]
    convert = static("java.lang.invoke.MethodHandleProxies", "asInterfaceInstance", _OBJECT, "java.lang.Class", _HANDLE)
    convert = convert.bindTo(type_of(interface)).asType(signature(interface, _HANDLE))
    return fill(method(owner, method_name, returns, interface), 1, convert)


@cache
def _handles() -> Java:
    return java_class("java.lang.invoke.MethodHandles")


@cache
def _lookup() -> Java:
    return _handles().publicLookup()
