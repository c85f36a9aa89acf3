"""Numba's compiler without the passes that kernels do not need, which were half of its work in Python.

Kernels have no closures, no exceptions, no ``with`` and no branches for types: the passes that look for these are left
out. Numba's answers to the same question (the types of a call, the size of a type) are kept. The resulting code is the
same. All is replaced only while a kernel is compiled, under Numba's lock.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from types import FunctionType, ModuleType
from typing import Any, ClassVar, Final

from llvmlite.binding import ffi
from numba.core import ir, ssa, typed_passes, types, untyped_passes
from numba.core.base import BaseContext
from numba.core.compiler import Compiler, CompilerBase, DefaultPassBuilder
from numba.core.compiler_machinery import PassManager
from numba.core.dispatcher import _FunctionCompiler  # type: ignore[attr-defined]
from numba.core.postproc import PostProcessor
from numba.core.runtime.context import NRTContext
from numba.core.targetconfig import ConfigStack
from numba.core.transforms import canonicalize_cfg
from numba.core.types.functions import BaseFunction

from quercus.trees.likelihood.solver.accesses import accesses, owned_memory

_KERNEL_PASSES = (
    untyped_passes.TranslateByteCode,
    untyped_passes.FixupArgs,
    untyped_passes.IRProcessing,
    untyped_passes.GenericRewrites,
    untyped_passes.ReconstructSSA,
    typed_passes.NopythonTypeInference,
    typed_passes.PreLowerStripPhis,
    typed_passes.NopythonRewrites,
    typed_passes.IRLegalization,
    typed_passes.NativeLowering,
    typed_passes.NoPythonBackend,
)
_COMPUTING = {"binop", "inplace_binop", "unary", "call"}
_NEVER_MET = {  # by Numba's own functions that kernels call
    untyped_passes.WithLifting,
    typed_passes.AnnotateTypes,
    typed_passes.DumpParforDiagnostics,
}


class _Passes(PassManager):
    """Runs passes without an event, timers and checks around each."""

    def _runPass(self, index: int, each: Any, state: Any) -> None:
        if isinstance(each, typed_passes.NopythonRewrites) and not _computes_arrays(state):
            return
        each.analysis = self._analysis
        each.run_initialization(state)
        each.run_pass(state)
        each.run_finalizer(state)


def _computes_arrays(state: Any) -> bool:
    """Return whether operators or functions take whole arrays: Numba fuses several of these into one loop."""
    return any(
        isinstance(signature and signature.return_type, types.Array)
        and isinstance(each, ir.Expr)
        and each.op in _COMPUTING
        for each, signature in state.calltypes.items()
    )


def _pass_manager(passes: Any, name: str) -> _Passes:
    manager = _Passes(name)
    for each in passes:
        manager.add_pass(each, each.__name__)
    manager.finalize()
    return manager


class KernelCompiler(CompilerBase):
    """Compiles kernels of this package."""

    _passes: ClassVar = _pass_manager(_KERNEL_PASSES, "kernel")

    def define_pipelines(self) -> list[PassManager]:
        """Return the passes of a kernel."""
        return [self._passes]


def _without_what_is_never_met(state: Any) -> list[PassManager]:
    """Return the passes of one of Numba's own functions."""
    usual = DefaultPassBuilder.define_nopython_pipeline(state).passes
    return [_pass_manager((each for each, _ in usual if each not in _NEVER_MET), "nopython")]


_FOUND: Final[dict[Any, Any]] = {}  # types of calls
_SIZES: Final[dict[str, int]] = {}  # of values, in bytes
_PLAIN: Final = {ir.Loc, str, int, float, bool, type(None), type(len), FunctionType, ModuleType, type}


def _with_cached_types(resolve: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that finds the types of a call only once.

    Numba finds them anew for each call, for the same call each time that a variable's type becomes known, and when it
    lowers it.
    """

    def resolved(*call: Any) -> Any:
        *owners, arguments, keywords = call
        flags = ConfigStack.top_or_none()
        try:
            key = *owners, tuple(arguments), tuple(dict(keywords).items()), flags and bool(flags.fastmath)
            types = _FOUND.get(key)
        except TypeError:  # not all that may be an argument can be a key
            return resolve(*call)
        if types is None:
            types = _FOUND[key] = resolve(*call)
        return types

    return resolved


@contextmanager
def replaced_attribute(owner: Any, name: str, value: Any) -> Iterator[None]:
    """Have an attribute another value inside."""
    missing = object()
    usual = vars(owner).get(name, missing)
    setattr(owner, name, value)
    try:
        yield
    finally:
        if usual is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, usual)


def _canonicalise_blocks(processor: Any, emit_dels: bool = False, **options: Any) -> None:
    """Order the blocks of a function; omit the steps that only closures and ``with`` need."""
    function = processor.func_ir
    if emit_dels or function.is_generator:
        _process(processor, emit_dels, **options)
    else:
        function.blocks = canonicalize_cfg(function.blocks)
        function.generator_info = None


_process = PostProcessor.run


_all_variables = ir.Inst._rec_list_vars


def _variables_of(owner: Any, value: Any) -> list[ir.Var]:
    """Return the variables among the parts of an instruction; most parts are no variables."""
    kind = type(value)
    if kind is ir.Var:
        return [value]
    if kind in _PLAIN:
        return []
    if kind is dict:
        value, kind = value.values(), list
    if kind is list or kind is tuple:
        return [variable for each in value for variable in _variables_of(owner, each)]
    return _all_variables(owner, value)


def _abi_size(target: Any, kind: Any) -> int:
    """Return the size of a value in bytes; LLVM must read a module to determine it."""
    key = str(kind)
    if key not in _SIZES:
        _SIZES[key] = kind.get_abi_size(target.target_data)
    return _SIZES[key]


_rewrite, _find_reassigned = ssa._run_block_rewrite, ssa._find_defs_violators


def _find_reassigned_anew(blocks: dict[int, Any], graph: Any) -> Any:
    """Return the variables that are assigned several times; what was known of inlined blocks holds no more."""
    for block in blocks.values():
        block.__dict__.pop("names", None)
    return _find_reassigned(blocks, graph)


def _rewrite_where_named(blocks: dict[int, Any], states: dict[str, Any], handler: Any) -> dict[int, Any]:
    """Give a variable a name for each of its assignments, in the blocks that name it: most do not."""
    rewritten = {}
    for label, block in blocks.items():
        rewritten[label] = block
        names = block.__dict__.get("names")
        if names is None:
            targets = {each.target.name for each in block.find_insts(ir.Assign)}
            names = block.names = targets.union(v.name for each in block.body for v in each.list_vars())
        if states["varname"] in names:
            (rewritten[label],) = _rewrite({label: block}, states, handler).values()
            rewritten[label].names = names
    return rewritten


def _without_wrappers(_: Any, flags: Any) -> Any:
    """Return the flags of a function that neither Python nor C calls."""
    flags.no_cpython_wrapper = flags.no_cfunc_wrapper = True
    return flags


def _install_known(target: Any) -> None:
    """Install later registrations, without searching for further registries."""
    for registry in tuple(target._registries):
        target.install_registry(registry)


@contextmanager
def economical_compilation(target: Any) -> Iterator[None]:
    """Have Numba compile what kernels need, and its own functions that they call, without what these do not need."""
    typing = target.typing_context
    target.install_registry(accesses)
    with ExitStack() as changes:
        for owner, name, value in (
            (Compiler, "define_pipelines", lambda self: _without_what_is_never_met(self.state)),
            (_FunctionCompiler, "_customize_flags", _without_wrappers),
            (PostProcessor, "run", _canonicalise_blocks),
            (ssa, "_find_defs_violators", _find_reassigned_anew),
            (ssa, "_run_block_rewrite", _rewrite_where_named),
            (NRTContext, "get_meminfos", owned_memory),
            (BaseContext, "get_abi_sizeof", _abi_size),
            (ir.Inst, "_rec_list_vars", _variables_of),
            (ffi.lib._lock, "_cblist", []),  # listeners to each call of LLVM
            (typing, "resolve_function_type", _with_cached_types(typing.resolve_function_type)),
            (BaseFunction, "get_call_type", _with_cached_types(BaseFunction.get_call_type)),
            (typing, "refresh", typing._load_builtins),
            (target, "refresh", lambda: _install_known(target)),
        ):
            changes.enter_context(replaced_attribute(owner, name, value))
        yield
