"""Options of `compile`, each declared once with its default, its meaning and the fields it sets.

The keyword arguments of `compile` and its docstring, the flags of `spyre-compile`, the table in the reference and the
options of passes follow from the fields of `CompileOptions`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, Field, dataclass, field, fields
from difflib import get_close_matches
from textwrap import fill
from typing import Any, TypeVar, get_args

from spyre_mlir.choices import (
    Addresses,
    HostFallback,
    InputLayouts,
    Integers,
    LoopForm,
    MaxSize,
    Numerics,
    OnFault,
    OnOverflow,
    Progress,
    SdscVersion,
    check_max_size,
    check_names,
    read_max_size,
    read_names,
)
from spyre_mlir.errors import InputError
from spyre_mlir.hw.spec import SPYRE, SpyreSpec, spec_with

PassOptions = Mapping[str, Mapping[str, object]]
# An option that the pipeline adds to every pass: whether the pass runs.
ENABLED = "enabled"

_Function = TypeVar("_Function", bound=Callable[..., Any])
_OPTIONS_HERE = "**choices: options, the fields of `CompileOptions`."
_WIDTH = 116


@dataclass(frozen=True)
class Option:
    """Metadata of an option besides its name, type and default.

    Attributes:
        meaning: what it does, in sentences that begin small, for docstring, ``--help`` and reference.
        sets: the pass it goes to, and the field it sets there; a pass alone runs if the option is true.
        flag: whether `spyre-compile` takes it.
        choices: the values it may have, if they are few.
        read: its value from the text after the flag, if it is neither a choice nor a switch.
        of_calls: whether it is about calls, and may differ from call to call of one program.
    """

    meaning: str
    sets: tuple[str, str] | tuple[str] | None = None
    flag: bool = True
    choices: tuple[str, ...] = ()
    read: Callable[[str], object] | None = None
    of_calls: bool = False


def _option(
    default: object,
    meaning: str,
    *,
    of: object = None,
    sets: tuple[str, str] | tuple[str] | None = None,
    flag: bool = True,
    read: Callable[[str], object] | None = None,
    of_calls: bool = False,
) -> Any:
    return field(default=default, metadata={"option": Option(meaning, sets, flag, get_args(of), read, of_calls)})


def read_spec(text: str) -> SpyreSpec:
    """Read a card specification from ``NAME=NUMBER,NAME=NUMBER``.

    Raises:
        InputError: the text is no such list, or no card has these numbers.
    """
    numbers: dict[str, int] = {}
    for pair in filter(None, text.split(",")):
        name, _, number = pair.partition("=")
        if not (number.isascii() and number.isdigit()):
            raise InputError(f"a card is NAME=NUMBER,…, got {pair!r}", hint="for example cores_per_card=64")
        numbers[name.strip()] = int(number)
    try:
        return spec_with(numbers)
    except ValueError as error:
        raise InputError(str(error)) from error


_TO_SUPERDSC = "convert-spyre-kernel-to-superdsc"
_TO_ROWS = "pad-rows"
_TO_LAYOUTS = "choose-layouts"
_TO_KERNEL = "convert-spyre-loop-to-spyre-kernel"
# An address in a file is the same in every call.
_BY_ADDRESS = ("reuse-inputs", "put-pages", "put-entries", "update-in-place", "take-experts")


@dataclass(frozen=True, kw_only=True)
class CompileOptions:
    """Every option of `compile` besides the model and its inputs.

    Raises:
        InputError: an option has no such value.
    """

    numerics: Numerics = _option(
        "device",
        "how calls compute: ``device`` rounds to the hardware's formats wherever a value is stored; ``exact`` "
        "rounds float32 results once per operation, as eager does; ``none`` computes in float32 without rounding or "
        "data-dependent checks, for a quick look at large models. `CompiledModel.verify` is always exact",
        of=Numerics,
        flag=False,
        of_calls=True,
    )
    addresses: Addresses = _option(
        "symbolic",
        "``symbolic`` binds addresses at run time, ``concrete`` writes them into the files",
        of=Addresses,
        sets=(_TO_SUPERDSC, "addresses"),
    )
    regions: bool = _option(
        True,
        "equal layers become one function, which is lowered and written once and launched per layer; a program stays "
        "flat if that saves too little, or if the host has a part in a layer",
        sets=("outline-regions",),
    )
    share_files: bool = _option(
        False,
        "equal operations at different addresses share one SuperDSC file, whose symbol ids are bound anew at every "
        "launch; off by default, because the published specification gives an id one value per bundle",
        sets=(_TO_SUPERDSC, "share"),
    )
    tile: bool = _option(
        True,
        "groups of kernels run in loops over blocks of their rows where that is predicted to be faster; with "
        "concrete addresses, only if the loops are unrolled",
        sets=("plan", "loops"),
    )
    in_place: bool = _option(
        True,
        "write a few positions of an argument into the blocks around them, in place: the host passes the starts of "
        "blocks. When off, and with concrete addresses, the new value is a separate tensor",
        sets=("update-in-place", ENABLED),
    )
    whole_pages: bool = _option(
        True,
        "store prompts page by page, in place; for calls with other slots the program is compiled again",
        sets=("put-pages", ENABLED),
    )
    chosen_experts: bool = _option(
        True,
        "with few tokens, a mixture of experts reads only the matrices of the chosen experts: the host reads the "
        "router's choice between two launches and passes the addresses of these matrices. When off, with concrete "
        "addresses, and in functions of control flow, all experts process all tokens",
        sets=("take-experts", ENABLED),
    )
    packed_weights: bool = _option(
        True,
        "weights of 8-bit integers that matrix products read are packed four to a word on the card, or eight if "
        "four bits suffice: a half or a quarter of the bytes of float16. Kernels unpack the words in the "
        "scratchpads; weights that are bound later must fit these bits. When off, the weights are sent as DL16",
        sets=("pack-weights", ENABLED),
    )
    inputs: InputLayouts = _option(
        "default",
        "layouts of inputs and results: ``default`` is the layout in which torch-spyre places a tensor on the card, "
        "and kernels that change it count; ``free`` lets the host place each tensor as its readers need it. "
        "Weights, integers, tensors that the program writes, and keys and values of a single query are always free",
        of=InputLayouts,
        sets=("place-inputs", "inputs"),
    )
    loops: LoopForm = _option(
        "loop",
        "``loop`` writes a loop into ``bundle.mlir``, ``unroll`` a file for every kernel of every trip, which is what "
        "concrete addresses need",
        of=LoopForm,
        sets=(_TO_SUPERDSC, "loops"),
    )
    sdsc_version: SdscVersion = _option(
        "TS26", "generation of the SuperDSC files", of=SdscVersion, sets=(_TO_SUPERDSC, "version")
    )
    spec: SpyreSpec = _option(
        SPYRE,
        "card to compile for; numbers that are not given are those of the standard card",
        read=read_spec,
    )
    on_fault: OnFault = _option(
        "raise",
        "how a call reacts to a fault of the program: ``raise``, ``warn`` through `logging`, or ``collect``; "
        "`CompiledModel.log` holds the faults of the last call",
        of=OnFault,
        flag=False,
        of_calls=True,
    )
    host_fallback: HostFallback = _option(
        "warn",
        "host steps, for operations that the device cannot run: ``warn`` lists them once, ``allow`` is silent, "
        "``error`` refuses them",
        of=HostFallback,
    )
    prefer_device: bool = _option(
        False,
        "run an operation on the device even if that takes many kernels",
        sets=("decompose-aten", "prefer_device"),
    )
    integers: Integers = _option(
        "auto",
        "operations on integers that may exceed 2^24: ``device`` computes them on the device and refuses larger "
        "numbers at the call, ``exact`` computes them on the host, as torch does, ``auto`` is ``device`` until a "
        "call meets a larger number; then the program is compiled again as ``exact``, once, with a warning",
        of=Integers,
        sets=("decompose-aten", "integers"),
    )
    keep_float32: bool = _option(
        False,
        "float32 stays float32 on the device instead of DL16, at twice the bytes; matrix products and functions "
        "without a float32 form compute in DL16, which a warning lists and the report counts",
        sets=(_TO_KERNEL, "keep_float32"),
    )
    keep_float32_in: tuple[str, ...] = _option(
        (),
        "names of parts that keep float32 while the rest is DL16: modules of the model with their submodules "
        "(``layers.0.norm``), lines (``model.py:7``), operators (``softmax``) or operations of kernels (``exp``); "
        "conversions are inserted at their boundaries. ``norm?`` may match nothing, as in some graphs of a function "
        "that ``torch.compile`` splits. The program stays flat. On a command line, names are separated by commas",
        sets=(_TO_KERNEL, "keep_float32_in"),
        read=read_names,
    )
    on_overflow: OnOverflow = _option(
        "warn",
        "how a call reacts to finite numbers beyond the largest DLFloat16: ``warn`` warns once, with the operations "
        "and their lines, ``raise`` returns no results, ``ignore`` says nothing; `CompiledModel.log` has them in "
        "any case. Infinities that come from the host, and fill values of masks, do not count",
        of=OnOverflow,
        flag=False,
        of_calls=True,
    )
    max_size: MaxSize = _option(
        None,
        "largest data-dependent size, as of ``nonzero`` or a boolean index: the parts that read such a size are "
        "compiled once, for this bound, and calls are padded and masked; a program in which padding would reach a "
        "result is refused. ``known`` takes the bounds that the program itself states, by ``torch._check`` and by "
        "its shapes. None compiles for the sizes of each call",
        read=read_max_size,
    )
    specialize_values: bool = _option(
        False,
        "where Python decides by values of tensors (``if``, ``range(int(n))``), compile the path that the example "
        "inputs take: the model runs once before it is compiled, and each call checks that Python would take the "
        "same path",
    )
    cache: bool = _option(
        True,
        "take programs that any process has lowered before from the cache on disk; a program for one size of a "
        "model with symbols is kept from the second time that size occurs. The environment variables "
        "``SPYRE_MLIR_CACHE`` (a directory, or ``off``) and ``SPYRE_MLIR_CACHE_SIZE`` (such as 500M) set its place "
        "and its largest size",
    )
    progress: Progress = _option(
        None,
        "progress of the compilation: None shows a bar on a terminal and nothing elsewhere, True also prints lines "
        "elsewhere, False shows nothing; a function is called with the name of every step",
        flag=False,
    )

    def __post_init__(self) -> None:
        for entry in fields(self):
            value, known = getattr(self, entry.name), about(entry)
            if known.choices and value not in known.choices:
                raise InputError(f"{entry.name} must be one of {', '.join(known.choices)}, got {value!r}")
            if isinstance(entry.default, bool) and not isinstance(value, bool):
                raise InputError(f"{entry.name} must be True or False, got {value!r}")
        check_names("keep_float32_in", self.keep_float32_in)
        check_max_size(self.max_size)
        if not (self.progress is None or isinstance(self.progress, bool) or callable(self.progress)):
            raise InputError(f"progress must be None, True, False or a function, got {self.progress!r}")
        if not isinstance(self.spec, SpyreSpec):  # pyright: ignore[reportUnnecessaryIsInstance] - Python callers
            raise InputError(f"spec must be a SpyreSpec, got {self.spec!r}", hint="dataclasses.replace(SPYRE, …)")

    @classmethod
    def of(cls, choices: Mapping[str, Any], *, by: str = "compile", beside: Sequence[str] = ()) -> CompileOptions:
        """Build the options from keyword arguments.

        Args:
            choices: values by name.
            by: who takes them, for the error.
            beside: names of further options that the caller has taken out, for the error.

        Raises:
            InputError: there is no such option, or it has no such value.
        """
        known = [*beside, *option_names()]
        if unknown := [name for name in choices if name not in known]:
            near = get_close_matches(unknown[0], known, 1)
            hint = f"did you mean {near[0]}?" if near else f"the options are {', '.join(known)}"
            raise InputError(f"{by} has no option {', '.join(unknown)}", hint=hint)
        return cls(**choices)

    @classmethod
    def of_calls(cls, choices: Mapping[str, Any], *, by: str) -> CompileOptions:
        """Build the options of a program that is compiled already: those about calls; see `of`.

        Raises:
            InputError: an option is about compiling; or as in `of`.
        """
        compiling = [entry.name for entry in fields(cls) if entry.name in choices and not about(entry).of_calls]
        if compiling:
            hint = "the options of calls are " + ", ".join(e.name for e in fields(cls) if about(e).of_calls)
            raise InputError(f"{by} takes no {compiling[0]}: the program is compiled", hint=hint)
        return cls.of(choices, by=by)

    def calls(self) -> dict[str, Any]:
        """Options that are about calls, by name, in the form `of_calls` takes."""
        return {entry.name: getattr(self, entry.name) for entry in fields(self) if about(entry).of_calls}

    def passes(self) -> dict[str, dict[str, object]]:
        """Pass options by pass name, in the form `pipeline.lower` takes."""
        chosen: dict[str, dict[str, object]] = {}
        for entry in fields(self):
            sets, value = about(entry).sets, getattr(self, entry.name)
            if sets is None or (len(sets) == 1 and not value):
                continue
            chosen.setdefault(sets[0], {}).update({sets[1]: value} if len(sets) == 2 else {})
        for name, asked in (("reuse-inputs", True), ("put-entries", True), ("put-pages", self.whole_pages)):
            chosen[name] = {ENABLED: self.in_place and asked}
        for name in (_TO_ROWS, _TO_LAYOUTS):  # a layout depends on the format
            chosen[name] = dict(chosen[_TO_KERNEL])
        chosen["pad-heads"] = {"keep_float32": self.keep_float32}
        if self.keep_float32_in:
            chosen.pop("outline-regions", None)  # equal layers may differ in what they keep
            chosen["decompose-aten"]["name_operators"] = True
        if self.addresses == "concrete":
            chosen |= {name: {ENABLED: False} for name in _BY_ADDRESS}
        if self.addresses == "concrete" and self.loops == "loop":
            chosen["plan"]["loops"] = False  # an address in a file does not advance
        return chosen


def about(entry: Field[Any]) -> Option:
    """Metadata of a field of `CompileOptions`."""
    option: Option = entry.metadata["option"]
    return option


def option_names() -> list[str]:
    """Names of the options, in order."""
    return [entry.name for entry in fields(CompileOptions)]


def takes_options(function: _Function) -> _Function:
    """Decorator that gives a function the options as keyword arguments, in its signature and in its docstring.

    The function takes them as ``**choices``, and its docstring names these in one line.
    """
    signature = inspect.signature(function)
    own = [p for p in signature.parameters.values() if p.kind is not inspect.Parameter.VAR_KEYWORD]
    chosen = [
        inspect.Parameter(
            entry.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=inspect.Parameter.empty if entry.default is MISSING else entry.default,
            annotation=entry.type,
        )
        for entry in fields(CompileOptions)
    ]
    function.__signature__ = signature.replace(parameters=[*own, *chosen])  # pyright: ignore[reportFunctionMemberAccess]
    before, marker, after = (function.__doc__ or "").partition(_OPTIONS_HERE)
    indent = " " * len(before.rpartition("\n")[2])
    texts = [f"{entry.name}: {about(entry).meaning}." for entry in fields(CompileOptions)] if marker else []
    entries = (fill(text, _WIDTH, subsequent_indent=f"{indent}    ") for text in texts)
    function.__doc__ = before + f"\n{indent}".join(entries) + after
    return function
