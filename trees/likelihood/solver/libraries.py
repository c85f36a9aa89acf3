"""LLVM's treatment of compiled kernels: once, with all that they call, and with few passes.

Numba optimises every function by itself, makes machine code of it, and links it into each of its callers, where both
are done again, level after level. Here only an *entry*, a kernel that Python calls, becomes machine code: it is its own
part with a wrapper for Python. All that is compiled on the way, kernels and functions of Numba's own, are *parts*: they
hand on their code to their callers.

This and `economy` build on parts of Numba which Numba does not promise to keep; `tests/unit/trees/test_libraries.py`
sees whether it still holds.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import copy
from typing import Any, ClassVar

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import CompileResult, Flags, _make_subtarget
from numba.core.compiler_lock import global_compiler_lock
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.lowering import Environment  # type: ignore[attr-defined]

from quercus.trees.likelihood.solver.economy import KernelCompiler, economical_compilation, replaced_attribute


class Part(JITCodeLibrary):
    """Code for the libraries that link it, without machine code of its own.

    Its own code and that of each part below it stay apart, as pieces, until an entry links them all, once.
    """

    _whole: ClassVar = False  # whether it is one piece with all parts below it
    _pieces: tuple[bytes, ...]  # each before those that call it

    def _optimize_functions(self, module: llvm.ModuleRef) -> None:
        """Prepare each function with few passes: all of them run on the whole."""
        module.data_layout = self._codegen._data_layout
        builder = _pass_builder(self._codegen, 0)
        passes = builder.getFunctionPassManager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_refprune_pass()
        for function in module.functions:
            passes.run(function, builder)

    def finalize(self) -> None:
        """Keep the code to be linked: optimising it is left to the entry."""
        pieces: dict[bytes, None] = {}
        for library in dict.fromkeys(self._linking_libraries):
            self._reload_init.update(library._reload_init)
            if isinstance(library, Part):
                pieces.update(dict.fromkeys(library._pieces))
            if self._whole or not isinstance(library, Part):
                self._final_module.link_in(library._get_module_for_linking(), preserve=True)
        self._optimize_final_module()
        for function in self._final_module.functions:
            if not function.is_declaration and function.linkage == llvm.Linkage.external:
                function.linkage = "linkonce_odr"
        self._pieces = (*pieces, self._final_module.as_bitcode())
        self._finalized = True

    def _optimize_final_module(self) -> None:
        """Leave it to the entry."""

    def _get_module_for_linking(self) -> llvm.ModuleRef:
        """Return the code with that of all parts below it, callers first: what is not called yet is not linked."""
        self._ensure_finalized()
        *others, own = self._pieces
        module = llvm.parse_bitcode(own)
        for piece in reversed(others):
            module.link_in(llvm.parse_bitcode(piece))
        return module

    def get_pointer_to_function(self, name: str) -> int:
        """Return no address: there is no machine code."""
        self._ensure_finalized()
        return 0

    def serialize_using_object_code(self) -> tuple[str, str, tuple[bytes, ...]]:
        """Return what `_unserialize` takes: the code."""
        self._ensure_finalized()
        return self.name, "part", self._pieces

    @classmethod
    def _unserialize(cls, codegen: Any, state: tuple[str, str, Any]) -> JITCodeLibrary:
        """Return a library that was serialised: a part, or an entry."""
        name, kind, data = state
        if kind == "part":
            part = cls(codegen, name)
            part._pieces, part._finalized = data, True
            return part
        with replaced_attribute(codegen, "_library_class", JITCodeLibrary):
            return JITCodeLibrary._unserialize(codegen, state)


class OptimisedPart(Part):
    """A part with all passes that Numba's own libraries have, on the whole of what it calls."""

    _whole = True
    _optimize_functions = JITCodeLibrary._optimize_functions
    _optimize_final_module = JITCodeLibrary._optimize_final_module


class CompactEntry(JITCodeLibrary):
    """An entry of which LLVM neither unrolls nor vectorises the loops, which takes it less than half the time."""

    _optimize_functions = Part._optimize_functions

    def _optimize_final_module(self) -> None:
        """Optimise as Numba does: lightly, so that what counts references can be pruned, and then in full."""
        for level in (0, 3):
            builder = _pass_builder(self._codegen, level)
            passes = builder.getModulePassManager()
            if level == 0:
                passes.add_loop_rotate_pass()
                passes.add_instruction_combine_pass()
                passes.add_jump_threading_pass()
            passes.add_refprune_pass()
            passes.run(self._final_module, builder)


def _pass_builder(codegen: Any, level: int) -> llvm.PassBuilder:
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_unrolling = tuning.loop_interleaving = False
    tuning.loop_vectorization = tuning.slp_vectorization = False
    return llvm.create_pass_builder(codegen._tm, tuning)


class OptimisedPartCompiler(KernelCompiler):
    """Numba's compiler, for an `OptimisedPart`."""

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function into a library of its own kind."""
        self.state.library = OptimisedPart(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)


class EntryCompiler(_FunctionCompiler):  # type: ignore[misc]
    """Wraps a part for Python: nothing but the wrapper is typed and lowered a second time.

    Parameters
    ----------
    entry, part : dispatchers of the same function
    library : the class of the entry's library
    """

    def __init__(self, entry: Any, part: Any, library: type[JITCodeLibrary]) -> None:
        whole = entry._compiler
        super().__init__(
            whole.py_func, whole.targetdescr, whole.targetoptions, whole.locals, whole.pipeline_class
        )
        self._part, self._library = part, library

    def _compile_core(self, args: tuple[Any, ...], return_type: Any) -> CompileResult:
        self._part.compile(args if return_type is None else return_type(*args))
        part = self._part.overloads[args]
        described = copy(part.fndesc)
        described.qualname = self.py_func.__qualname__
        described.env_name = f"{part.fndesc.env_name}$entry"
        environment = Environment.from_fndesc(described)  # the wrapper's needs of Python; the part has none
        flags = Flags()
        self.targetdescr.options.parse_as_flags(flags, self.targetoptions)
        target = _make_subtarget(
            self.targetdescr.target_context, flags
        )  # one of a loaded part counts no references
        library = self._library(target.codegen(), described.qualname)
        library.enable_object_caching()
        library.add_linking_library(part.library)
        target.create_cpython_wrapper(library, described, environment, part.call_helper)
        return part._replace(
            library=library,
            entry_point=target.get_executable(library, described, environment),
            fndesc=described,
            environment=environment,
            metadata={},
        )


@contextmanager
def compiling_parts(target: Any) -> Iterator[None]:
    """Have all that is compiled inside be parts, but for what has a compiler of its own.

    Meanwhile no garbage is collected: there are millions of objects, and hardly any is garbage before the end.
    """
    codegen = target.codegen()
    with global_compiler_lock:
        if codegen._library_class is Part:
            yield
            return
        target.refresh()  # Numba's run-time library, which the first use compiles, is no part
        set_environment = codegen.set_env

        def set_known_environment(name: str, environment: Any) -> None:
            if codegen._engine.is_symbol_defined(name):  # parts have machine code only in entries
                set_environment(name, environment)

        collects = gc.isenabled()
        gc.disable()
        try:
            with (
                replaced_attribute(codegen, "_library_class", Part),
                replaced_attribute(codegen, "set_env", set_known_environment),
                economical_compilation(target),
            ):
                yield
        finally:
            if collects:
                gc.enable()
