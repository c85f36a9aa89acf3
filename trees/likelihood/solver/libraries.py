"""How LLVM treats compiled kernels: once, with all that they call, and with no more effort than pays.

Numba optimises every function by itself, makes machine code of it, and links it into each of its callers, where both
are done again, level after level. Here only an *entry*, a kernel that Python calls, becomes machine code. All that is
compiled on the way, kernels and functions of Numba's own, are *parts*: they hand on their code to their callers.

This builds on `numba.core.codegen`, which Numba does not promise to keep; `tests/unit/trees/test_libraries.py` sees
whether it still holds.
"""

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, ClassVar

import llvmlite.binding as llvm
from numba.core.codegen import JITCodeLibrary
from numba.core.compiler import Compiler
from numba.core.compiler_lock import global_compiler_lock

_ENVIRONMENT = "_ZN08NumbaEnv"  # how Numba begins the name of a function's environment


class Part(JITCodeLibrary):
    """Code for the libraries that link it, without machine code of its own."""

    def _optimize_functions(self, module: llvm.ModuleRef) -> None:
        """Prepare each function with few passes: all of them run on the whole."""
        module.data_layout = self._codegen._data_layout
        builder = _builder(self._codegen, 0)
        for function in module.functions:
            passes = builder.getFunctionPassManager()
            passes.add_sroa_pass()
            passes.add_simplify_cfg_pass()
            passes.add_refprune_pass()
            passes.run(function, builder)

    def _optimize_final_module(self) -> None:
        """Leave it to the entry."""

    def _finalize_final_module(self) -> None:
        """Keep the code to be linked; what becomes machine code is a module of the environments alone."""
        if self._shared_module is None:  # else it comes from the cache
            code = self._final_module
            for function in code.functions:
                if not function.is_declaration and function.linkage == llvm.Linkage.external:
                    function.linkage = "linkonce_odr"
            self._shared_module = code
            environments = [v.name for v in code.global_variables if v.name.startswith(_ENVIRONMENT)]
            lines = [f'@"{name}" = common global i8* null' for name in environments]
            empty = str(self._codegen._create_empty_module(self.name))  # type: ignore[no-untyped-call]
            self._final_module = llvm.parse_assembly("\n".join([empty, *lines]))
        super()._finalize_final_module()  # type: ignore[no-untyped-call]


class OptimisedPart(Part):
    """A part with all passes that Numba's own libraries have."""

    _optimize_functions = JITCodeLibrary._optimize_functions
    _optimize_final_module = JITCodeLibrary._optimize_final_module


class CompactEntry(JITCodeLibrary):
    """An entry of which LLVM neither unrolls nor vectorises the loops, which takes it less than half the time."""

    _optimize_functions = Part._optimize_functions

    def _optimize_final_module(self) -> None:
        """Optimise as Numba does: lightly, so that what counts references can be pruned, and then in full."""
        for level in (0, 3):
            builder = _builder(self._codegen, level)
            passes = builder.getModulePassManager()
            if level == 0:
                passes.add_loop_rotate_pass()
                passes.add_instruction_combine_pass()
                passes.add_jump_threading_pass()
            passes.add_refprune_pass()
            passes.run(self._final_module, builder)


def _builder(codegen: Any, level: int) -> llvm.PassBuilder:
    tuning = llvm.create_pipeline_tuning_options(speed_level=level)
    tuning.loop_unrolling = tuning.loop_interleaving = False
    tuning.loop_vectorization = tuning.slp_vectorization = False
    return llvm.create_pass_builder(codegen._tm, tuning)


class EntryCompiler(Compiler):
    """Numba's compiler, with a library of its own."""

    library: ClassVar[type[JITCodeLibrary]] = JITCodeLibrary

    def compile_extra(self, func: Callable[..., Any]) -> Any:
        """Compile a function into a library of the class `library`."""
        self.state.library = self.library(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        return super().compile_extra(func)  # type: ignore[no-untyped-call]


class CompactCompiler(EntryCompiler):
    """For a `CompactEntry`."""

    library = CompactEntry


class OptimisedPartCompiler(EntryCompiler):
    """For an `OptimisedPart`."""

    library = OptimisedPart


@contextmanager
def compiling_parts(target: Any) -> Iterator[None]:
    """Have all that is compiled inside be parts, but for what has a compiler of its own.

    Meanwhile no garbage is collected: there are millions of objects, and hardly any is garbage before the end.
    """
    with global_compiler_lock:
        target.refresh()  # Numba's run-time library, which the first use compiles, is no part
        codegen = target.codegen()
        usual, codegen._library_class = codegen._library_class, Part
        collects = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            codegen._library_class = usual
            if collects:
                gc.enable()
