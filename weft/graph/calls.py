"""Calls: how arguments meet parameters, and what the arguments of a source say."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from weft.cameras import AddressError, camera_of
from weft.errors import Span, WeftError, did_you_mean, error
from weft.graph.patterns import PatternCall, pattern_of
from weft.names import FilmFile, Letters, SoundFile, is_file
from weft.ops import WORDS
from weft.osc_packets import is_address
from weft.sources import FILM, PICTURE, SEQUENCE_RATE, SOUND, MediaKind, SourceParam, SourceSpec, ends_as, is_sequence
from weft.syntax.ast import Argument, Call, Expression, Ident, SpindleDefinition, SpindleParameter, Text, literal_number
from weft.syntax.foreign import MORE, hint_for

# Pictures in a row that are shown in a second.
_SLOWEST, _FASTEST = 0.01, 1000.0

# --- matching arguments with parameters, for builtins, spindles and sources ---


class Parameterlike(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def default(self) -> float | str | Expression | None: ...


def signature(name: str, params: Sequence[Parameterlike], variadic: bool = False) -> str:
    """How a call is written: `clamp(x, lo: 0, hi: 1)`."""
    shown = [p.name if p.default is None else f"{p.name}: {_default_text(p.default)}" for p in params]
    return f"{name}({', '.join(shown + ['…'] * variadic)})"


def _default_text(default: float | str | Expression) -> str:
    if isinstance(default, str):
        return f'"{default}"'
    return f"{default:g}" if isinstance(default, int | float) else default.span.text


def match_arguments(
    name: str, params: Sequence[Parameterlike], args: Sequence[Argument], span: Span, variadic: bool = False
) -> list[Expression | None]:
    """The argument of each parameter, in order, and then the further arguments of a variadic callable; None where the
    default holds. Raises WeftError for arguments that do not fit."""
    if len(args) == len(params) and all(arg.label is None for arg in args):
        return [arg.value for arg in args]
    given: dict[str, Argument] = {}
    extra: list[Expression | None] = []
    for position, arg in enumerate(args):
        if arg.label is None and position >= len(params):
            if not variadic:
                many = f"{len(params)} argument{'s' * (len(params) != 1)}" if params else "no arguments"
                raise error("too-many-arguments", f"{name} takes {many}, and this is one more", arg.span,
                            _hint_for_more(name, params) or signature(name, params))  # fmt: skip
            extra.append(arg.value)
            continue
        label = params[position].name if arg.label is None else arg.label
        if not any(p.name == label for p in params):
            hint = did_you_mean(label, [p.name for p in params]) or signature(name, params, variadic)
            raise error("unknown-argument", f'{name} has no argument "{label}"', arg.label_span or arg.span, hint)
        if label in given and arg.label is not None and given[label].label is not None:
            continue  # the parser has reported it
        if label in given:
            raise error("duplicate-argument", f'{name} is given "{label}" twice', arg.span,
                        signature(name, params, variadic))  # fmt: skip
        given[label] = arg
    missing = [p.name for p in params if p.default is None and p.name not in given]
    if missing:
        names = " and ".join(f'"{m}"' for m in missing)
        raise error("missing-argument", f"{name} also needs {names}", span, signature(name, params, variadic))
    return [given[p.name].value if p.name in given else None for p in params] + extra


def _hint_for_more(name: str, params: Sequence[Parameterlike]) -> str | None:
    """What was probably meant by more arguments than there are parameters. The patch's own spindles get no hint."""
    first = params[0] if params else None
    is_own = isinstance(first, SpindleParameter) and not first.ident.span.source.library
    return None if is_own else MORE.get(name)


def means_word(call: Call, spindle: SpindleDefinition) -> bool:
    """Whether a call means the word for bundles, if a spindle of a library has the same name. It means the word if the
    number of its arguments fits, and none has a label."""
    word = WORDS.get(call.name)
    is_labelled = any(argument.label is not None for argument in call.args)
    return word is not None and spindle.span.source.library and word.fits(len(call.args)) and not is_labelled


# --- calls of sources: their outputs, axes and files ---


def source_shape(call: Call, spec: SourceSpec) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Outputs and axes of a source call; for `load` these depend on the kind of file, for `pattern` on the text."""
    if spec.is_computed:
        return called_pattern(call, spec).names, spec.axes
    if spec.is_live or spec.is_sent or not any(param.kind == "text" for param in spec.params):
        return spec.outputs, spec.axes
    path = source_text(call, spec)
    if not spec.media:
        return spec.outputs, spec.axes
    kind = media_kind(path.value, spec)
    if kind is None:
        endings = ", ".join(e for m in spec.media for e in m.endings)
        raise error("unknown-media", f'"{path.value}" does not end like a picture, film or sound', path.span,
                    f"known endings: {endings}")  # fmt: skip
    return kind.outputs, kind.axes


def called_pattern(call: Call, spec: SourceSpec) -> PatternCall:
    """The pattern of a call. Raises WeftError at the place of a mistake in it."""
    text = source_text(call, spec)
    values = match_arguments(spec.name, spec.params, call.args, call.span)
    numbers: dict[str, float] = {}
    for param, value in zip(spec.params, values, strict=True):
        if param.kind == "number":
            number = float(param.default or 0) if value is None else literal_number(value)
            if number is None:
                hint = "to change its speed, map the time: p@value(me@time ~ …)" if param.name == "per" else None
                raise error("needs-a-number", f'"{param.name}" has to be a plain number',
                            value.span if value else call.span, hint)  # fmt: skip
            if param.name == "per" and not 0.001 <= number <= 10_000:
                raise error("pattern-out-of-range", "a cycle takes 0.001 to 10,000 beats",
                            value.span if value else call.span)  # fmt: skip
            numbers[param.name] = number
    return pattern_of(text, Fraction(str(numbers["per"])), numbers["seed"])


def called_letters(call: Call, spec: SourceSpec) -> tuple[Letters, float]:
    """The letters of a call and their size, in heights of the picture. Raises WeftError for arguments that are not
    written out."""
    given = dict(zip(spec.params, match_arguments(spec.name, spec.params, call.args, call.span), strict=True))
    texts: dict[str, str] = {}
    size = 0.0
    for param, value in given.items():
        if param.kind == "number":
            known = float(param.default or 0) if value is None else literal_number(value)
            if known is None or not 0 < known <= MAX_EM:
                raise error("needs-a-number", f'"{param.name}" is a plain number above 0, up to {MAX_EM}',
                            value.span if value else call.span,
                            "a remap makes letters grow: t@v(me@x ~ …, me@y ~ …)")  # fmt: skip
            size = known
        elif isinstance(value, Text):
            texts[param.name] = media_path(value) if param.name == "font" else value.value
        elif value is None:
            texts[param.name] = str(param.default)
        else:
            raise error("needs-a-string", f'{spec.name} needs "{param.name}" as text in quotes', value.span,
                        f"for example {spec.example}")  # fmt: skip
    if texts["align"] not in ALIGNED:
        align = next(v for p, v in given.items() if p.name == "align")
        raise error("unknown-alignment", f'"{texts["align"]}" is no way to align', align.span if align else call.span,
                    "write " + " or ".join(f'"{each}"' for each in ALIGNED))  # fmt: skip
    return Letters(texts["text"], texts["font"] or None, texts["align"]), size


def constant_arguments(
    call: Call, spec: SourceSpec,
    number_of: Callable[[Expression, SourceParam], float | None] = lambda node, param: literal_number(node),
) -> tuple[str | float, ...]:
    """The arguments of a call, in the order of the parameters. `number_of` gives the number of an argument, by default
    that of a literal. Raises WeftError for one that is not constant."""
    args: list[str | float] = []
    values = match_arguments(spec.name, spec.params, call.args, call.span)
    for param, value in zip(spec.params, values, strict=True):
        number = None if value is None else number_of(value, param)
        if value is None:
            args.append(param.default if param.default is not None else "")
        elif isinstance(value, Text) and "text" in param.kind:
            if param.among and value.value not in param.among:
                hint = did_you_mean(value.value, param.among) or "it is " + " or ".join(f'"{o}"' for o in param.among)
                raise error("unknown-choice", f'{spec.name} has no {param.name} "{value.value}"', value.span, hint)
            if param.is_address:
                check_address(value)
            args.append(_camera(value) if param.is_camera else value.value)
        elif number is not None and "number" in param.kind:
            _check_whole(param, number, value.span)
            args.append(number)
        else:
            raise error("needs-a-constant", f'{spec.name} needs "{param.name}" as a plain {param.kind}', value.span,
                        hint_for(spec.name) or f"for example {spec.example}")  # fmt: skip
    return tuple(args)


def _camera(text: Text) -> str:
    """The camera that a text names. Raises WeftError."""
    try:
        found = camera_of(text.value)
    except AddressError as problem:
        raise error("unknown-camera", f'"{text.value}": {problem.reason}', text.span, problem.hint) from None
    return media_path(text) if found.kind == "file" else text.value


def text_as_number(text: Text) -> WeftError:
    """The error for a text in the place of a strand."""
    try:
        hint = f"without quotes, this is the number {float(text.value):g}"
    except ValueError:
        hint = "text goes where a name, a path or an address is asked for"
    return error("text-as-number", "text cannot be used as a number", text.span, hint)


def check_address(text: Text) -> None:
    """Raises WeftError for a text that is no address of OSC."""
    if not is_address(text.value):
        hint = f'write "/{text.value}"' if is_address("/" + text.value) else \
            "it begins with /, and has none of space # * , ? [ ] { } in it"
        raise error("not-an-address", "this is no address of OSC", text.span, hint)


def _check_whole(param: SourceParam, number: float, span: Span) -> None:
    if param.whole is not None and not (number % 1 == 0 and param.whole[0] <= number <= param.whole[1]):
        least, most = param.whole
        raise error("argument-out-of-range", f'"{param.name}" is a whole number from {least} to {most}', span)


def called_sound(call: Call, spec: SourceSpec, rate: float) -> tuple[SoundFile, bool] | None:
    """The sound that a call loads, in samples at a rate, and whether it is repeated; None if it loads something else.
    Raises WeftError for arguments that are not written out."""
    path = source_text(call, spec)
    if media_kind(path.value, spec) is not SOUND:
        return None
    repeats = _loops(call, spec, False, "what repeats at times is a remap: k@l(me@time ~ me@time % 2)")
    return SoundFile(media_path(path), int(rate)), repeats


def called_film(call: Call, spec: SourceSpec, moves: Callable[[str], bool]) -> FilmFile | None:
    """The film that a call loads; None if it loads something else. `moves` says whether a picture is a film, that is,
    has several frames. Raises WeftError for arguments that are not written out."""
    path = source_text(call, spec)
    kind = media_kind(path.value, spec)
    if kind is not FILM and not (kind is PICTURE and moves(media_path(path))):
        return None
    repeats = _loops(call, spec, True, "a remap of the time plays a film in any way: f@r(me@time ~ …)")
    return FilmFile(media_path(path), repeats)


def speed_of(call: Call, spec: SourceSpec) -> float:
    """How much faster pictures in a row are shown than at the usual rate, by the argument `fps` of a call; 1 for any
    other file. Raises WeftError if it is not written out, out of bounds, or said of another file."""
    given = dict(zip(spec.params, match_arguments(spec.name, spec.params, call.args, call.span), strict=True))
    value = next((value for param, value in given.items() if param.name == "fps"), None)
    if value is None:
        return 1.0
    number = literal_number(value)
    if number is None:
        raise error("needs-a-number", '"fps" is a plain number', value.span, "such as fps: 24")
    if not is_sequence(source_text(call, spec).value):
        words = '"fps" is for pictures in a row, and this file has times of its own'
        raise error("argument-out-of-range", words, value.span, "f@r(me@time ~ me@time * 2) is twice as fast")
    if not _SLOWEST <= number <= _FASTEST:
        words = f'"fps" is a number from {_SLOWEST:g} to {_FASTEST:g}'
        raise error("argument-out-of-range", words, value.span, "such as fps: 24")
    return number / SEQUENCE_RATE


def _loops(call: Call, spec: SourceSpec, usually: bool, hint: str) -> bool:
    """Whether a call repeats its file, by the argument `loop`. Raises WeftError if that is not written out."""
    given = dict(zip(spec.params, match_arguments(spec.name, spec.params, call.args, call.span), strict=True))
    loop = next(value for param, value in given.items() if param.name == "loop")
    number = float(usually) if loop is None else literal_number(loop)
    if number not in (0.0, 1.0):
        raise error("needs-a-number", '"loop" is 0 or 1, as a plain number', (loop or call).span, hint)
    return number != 0


def called_analysis(call: Call, spec: SourceSpec) -> tuple[Expression, tuple[float, ...]]:
    """What an analysis hears, and its other arguments. Raises WeftError for those that do not fit."""
    values = match_arguments(spec.name, spec.params, call.args, call.span)
    strand = values[0]
    if strand is None or isinstance(strand, Text):
        raise error("needs-a-strand", f"{spec.name} analyses a sound", (strand or call).span,
                    f"for example {spec.example}")  # fmt: skip
    numbers: list[float] = []
    for param, value in list(zip(spec.params, values, strict=True))[1:]:
        number = param.default if value is None else literal_number(value)
        if not isinstance(number, int | float):
            raise error("needs-a-constant", f'{spec.name} needs "{param.name}" as a plain number', (value or call).span,
                        f"for example {spec.example}")  # fmt: skip
        _check_whole(param, number, (value or call).span)
        numbers.append(float(number))
    return strand, tuple(numbers)


def sound_of_film(film: FilmFile, rate: float) -> SoundFile:
    """The sound of a film, in samples at a rate."""
    return SoundFile(film.path, int(rate))


MAX_EM = 100
ALIGNED = ("left", "center", "right")


def bindable(call: Call, spec: SourceSpec, names: Sequence[str]) -> Sequence[str]:
    """All outputs to which a source with the outputs `names` can be bound. A film also has sound, and letters have
    colours."""
    kind = media_kind(source_text(call, spec).value, spec) if spec.media else None
    return (*names, *(spec.further if kind is None else kind.sound))


def bound_planes(call: Call, spec: SourceSpec, names: Sequence[str], outputs: Sequence[Ident]) -> list[int]:
    """Which of a source's outputs are bound: those of a pattern by name, any others by place. Two outputs of a film are
    its sound, and so are the two that come after three or four of its picture."""
    if not spec.is_computed:
        planes = list(range(len(bindable(call, spec, names))))
        if is_sound_of_film(call, spec, outputs):
            del planes[len(outputs) - 2 : len(names)]
        return planes[: len(outputs)]
    for output in outputs:
        if output.name not in names:
            raise error("unknown-output", f'this pattern has no output "{output.name}"', output.span,
                        did_you_mean(output.name, names) or f"it has {', '.join(names)}")  # fmt: skip
    return [names.index(output.name) for output in outputs]


def media_kind(path: str, spec: SourceSpec) -> MediaKind | None:
    """The kind of file that a path names, by its ending."""
    return next((kind for kind in spec.media if ends_as(path, kind)), None)


def media_path(text: Text) -> str:
    """The path of a media file that a text names. It is relative to the file of the text. It never equals another name
    among pictures or cameras, whatever the text is."""
    path = os.path.join(os.path.dirname(text.span.source.name), text.value)
    return path if is_file(path) and ":" not in path else os.path.join(os.curdir, path)


def is_heard(planes: Sequence[int], names: Sequence[str]) -> bool:
    """Whether all these outputs of a source with the outputs `names` belong to the sound of a film."""
    return bool(planes) and min(planes) >= len(names)


def is_sound_of_film(call: Call, spec: SourceSpec, outputs: Sequence[Ident]) -> bool:
    """Whether a film has enough outputs here that the last two are its sound."""
    if not spec.media or media_kind(source_text(call, spec).value, spec) is not FILM:
        return False
    bound, _ = split_size(spec, outputs)
    return len(bound) in (5, 6) or (len(bound) == 2 and not {each.name for each in bound} <= set(FILM.outputs))


SIZES = ("w", "h")
"""What `load("a.png")::img<r, g, b, w, h>` calls the width and height in pixels. They are no members."""


def split_size(spec: SourceSpec, outputs: Sequence[Ident]) -> tuple[Sequence[Ident], tuple[str, ...]]:
    """The outputs to which a source is bound, and the names of its size, if those are bound at the end."""
    names = tuple(output.name for output in outputs)
    if spec.media and names[-2:] == SIZES and len(names) in (5, 6):  # after r g b, or r g b a
        return outputs[:-2], SIZES
    return outputs, ()


@dataclass(frozen=True, slots=True, eq=False)
class PictureSize:
    """The width (`place` 0) or height (1) in pixels of the picture that a call loads, or its length in seconds (2)."""

    call: Call
    place: int


def sizes_of(call: Call, spec: SourceSpec, bound: tuple[str, ...]) -> dict[str, PictureSize]:
    """The width and height of a picture or film, and the length of a film or sound, by the names that read them."""
    kind = media_kind(source_text(call, spec).value, spec) if spec.media else None
    if kind is SOUND:
        return {"seconds": PictureSize(call, 0)}
    if kind is None or "x" not in kind.axes:
        return {}
    sizes = ("width", "height", "seconds") if "abstime" in kind.axes else ("width", "height")
    return {name: PictureSize(call, k) for names in (sizes, bound) for k, name in enumerate(names)}


def source_text(call: Call, spec: SourceSpec) -> Text:
    """The string that a source is called with. Raises WeftError if it is not a string literal."""
    values = match_arguments(spec.name, spec.params, call.args, call.span)
    for param, value in zip(spec.params, values, strict=True):
        if param.kind == "text" and value is not None:
            if isinstance(value, Text):
                return value
            raise error("needs-a-string", f'{spec.name} needs "{param.name}" as text in quotes', value.span,
                        hint_for(spec.name) or f"for example {spec.example}")  # fmt: skip
    raise TypeError(f"{spec.name} takes no string")
