"""A run: load the weights, observe the prompt's pass, generate the tokens after it, and report what was confirmed.

    from atlas.execution.session import run
    result = run(graph, Options(prompt="The capital of France is"))

Nothing is printed here. Call `atlas.execution.require_extra` before importing this where torch may be missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from atlas.analyse.trace import Pass
from atlas.execution import devices, fused_attention, limits, sampling
from atlas.execution.checkpoint_weights import CheckpointWeights
from atlas.execution.generation import OnText, generate
from atlas.execution.interrupt import Check, interruptible
from atlas.execution.observer import Observer
from atlas.execution.options import Options, require_utf8
from atlas.execution.prompt import Prompt, PromptReader, TextStream
from atlas.execution.random_weights import RandomWeights
from atlas.execution.result import (
    Generated,
    Logits,
    NextToken,
    ObservedTrace,
    PromptToken,
    Rates,
    Result,
    Seconds,
)
from atlas.execution.runner import OnProgress, Runner
from atlas.execution.state import KVCache
from atlas.execution.torch_errors import is_out_of_memory, run_error
from atlas.execution.weights import ResidentWeights, Weights, fits_in_memory
from atlas.graph.graph import Graph
from atlas.resolution.model import require_described

OnTrace = Callable[[ObservedTrace], None]
"""Receives the observed steps of the prompt's pass."""


@dataclass(frozen=True, slots=True)
class Callbacks:
    """What is called while a run goes on, from the thread that computes.

    Attributes:
        on_progress: before each of the `layers` of the prompt's pass and each of the `tokens` after it.
        on_text: with each piece of generated text as it is decoded.
        on_trace: with a summary of every observed step's values.
    """

    on_progress: OnProgress | None = None
    on_text: OnText | None = None
    on_trace: OnTrace | None = None


_NO_CALLBACKS = Callbacks()


def run(graph: Graph, options: Options, callbacks: Callbacks = _NO_CALLBACKS) -> Result:
    """A forward pass over the prompt, and generation if asked for.

    Raises:
        NotDescribed: the model computes something that is not described, or that cannot be run yet.
        UsageError: an option is out of range, or the prompt cannot be turned into ids.
        CheckpointError: the weights or the tokenizer cannot be read.
        ConfigError: the configuration states impossible sizes.
        RunError: a step failed.
        KeyboardInterrupt: at once, although torch may compute until its next step ends.
    """
    (result,) = run_each(graph, options, [options.prompt], callbacks)
    return result


def run_each(
    graph: Graph,
    options: Options,
    prompts: Sequence[str],
    callbacks: Callbacks = _NO_CALLBACKS,
) -> Iterator[Result]:
    """One run per prompt, with the weights loaded once. All prompts are tokenized before the first is run.

    Args:
        prompts: in place of the options' own.

    Raises:
        AtlasError, KeyboardInterrupt: see `run`.
    """
    require_described(graph.model, "run")
    options.check()
    for text in prompts:
        require_utf8(text)
    try:
        with closing(PromptReader(options)) as reader:
            session = Session(graph, options)
            read = [reader.read(text, graph.dims["vocab_size"]) for text in prompts]
            session.prepare(read)
            for prompt in read:
                yield session.run(prompt, callbacks)
    except (MemoryError, RuntimeError) as error:
        if not is_out_of_memory(error):
            raise
        raise run_error(graph.model.id, error) from error


@dataclass(frozen=True, slots=True)
class _Passes:
    """What the passes of one run give: the prompt's logits, those of its last position, and the ids after it."""

    logits: Logits
    last: Tensor
    ids: list[int]
    text: str | None
    prefilled_at: float
    decoded_at: float


class Session:
    """Weights, opened once for any number of prompts."""

    def __init__(self, graph: Graph, options: Options) -> None:
        self._begun = time.perf_counter()
        self._options = options
        self._device = devices.choose(options.device)
        dtype = options.dtype or (graph.model.dtype if graph.model.dtype in devices.FLOATS else "BF16")
        itemsize = devices.float_dtype(dtype).itemsize
        limits.require_possible(graph, devices.memory_bytes(self._device), itemsize)
        self._weights = _weights(graph, options, self._device)
        self._code = devices.CODES[self._weights.dtype]
        self._graph = replace(graph, model=replace(graph.model, dtype=self._code))

    def prepare(self, prompts: Sequence[Prompt]) -> None:
        """Compile the model. Weights stay in a device's memory if more than one pass is to come and they fit."""
        several = len(prompts) > 1 or self._options.max_new_tokens > 1
        weights: Weights = self._weights
        if several and fits_in_memory(self._graph, self._weights.dtype, self._device):
            weights = ResidentWeights(self._weights)
        self._runner = Runner(
            self._graph,
            weights,
            dtype=self._weights.dtype,
            device=self._device,
            fuse=not self._options.trace,
        )

    def run(self, prompt: Prompt, callbacks: Callbacks) -> Result:
        """One prompt's run."""
        graph, options = self._graph, self._options
        length = len(prompt.ids)
        observer = Observer(
            graph, Pass(batch=1, positions=length, past=0), summarise=callbacks.on_trace is not None
        )
        started = time.perf_counter()
        passes = interruptible(lambda check: self._passes(prompt, observer, callbacks, check))
        load = started - self._begun
        self._begun = time.perf_counter()  # of a further prompt, loading is what comes before its own pass
        steps = observer.steps
        if callbacks.on_trace is not None:
            callbacks.on_trace(self._trace(prompt, observer))
        likeliest = sampling.likeliest(passes.last, options.show) if passes.logits.finite else []
        texts = prompt.texts([[id] for id, _, _ in likeliest], special=True)
        seconds = Seconds(load, passes.prefilled_at - started, passes.decoded_at - passes.prefilled_at)
        decode_passes = max(len(passes.ids) - 1, 0)
        notes = (*self._weights.notes, *prompt.notes, *_length_note(graph, length + options.max_new_tokens))
        return Result(
            model=graph.model.id,
            weights=self._kind,
            source=self._weights.source,
            device=str(self._device),
            dtype=self._code,
            kernel=self._kernel,
            tokenizer=prompt.tokenized_by,
            prompt_ids=prompt.ids,
            prompt_tokens=(
                tuple(PromptToken(id, text) for id, text in zip(prompt.ids, prompt.tokens(), strict=True))
                if options.show_prompt
                else None
            ),
            logits=passes.logits,
            confirmed=observer.confirmed and passes.logits.finite,
            steps=steps,
            next_tokens=tuple(
                NextToken(id, text, logit, probability)
                for (id, logit, probability), text in zip(likeliest, texts, strict=True)
            ),
            generated=Generated(tuple(passes.ids), passes.text),
            seconds=seconds,
            decode_passes=decode_passes,
            tokens_per_second=Rates(_rate(length, seconds.prefill), _rate(decode_passes, seconds.decode)),
            peak_memory_bytes=devices.peak_memory_bytes(),
            warnings=self._weights.warnings,
            notes=notes,
        )

    @property
    def _kind(self) -> str:
        return "random" if self._options.weights is None else "checkpoint"

    @property
    def _kernel(self) -> str:
        return fused_attention.NAME if self._runner.fused else "as declared"

    def _passes(self, prompt: Prompt, observer: Observer, callbacks: Callbacks, check: Check) -> _Passes:
        """The prompt's pass, and those of the tokens after it unless a value of the first is not finite."""

        def on_progress(what: str, done: int, of: int) -> None:
            check()
            if callbacks.on_progress:
                callbacks.on_progress(what, done, of)

        options, graph = self._options, self._graph
        most = options.max_new_tokens
        # The last generated token is not read again, so it needs no place in the cache.
        cache = KVCache(len(prompt.ids) + most - 1) if most > 1 else None
        largest = max(graph.size(weight) for weight in graph.weights.values())
        with devices.threads_for(largest, self._device):
            tokens = torch.tensor([prompt.ids])
            logits = self._runner(tokens, cache=cache, observe=observer, on_progress=on_progress)
            found = Logits(tuple(logits.shape), devices.CODES[logits.dtype], bool(logits.isfinite().all()))
            last = logits[0, -1].clone()  # vocab_size; those of the other positions are freed
            del logits
            prefilled_at = time.perf_counter()
            stream = TextStream(prompt, special=options.special)
            sound = found.finite and not observer.steps.not_finite
            ids = (
                generate(self._runner, last, prompt, options, cache, stream, on_progress, callbacks.on_text)
                if sound
                else []
            )
        return _Passes(found, last, ids, stream.text, prefilled_at, time.perf_counter())

    def _trace(self, prompt: Prompt, observer: Observer) -> ObservedTrace:
        return ObservedTrace(
            model=self._graph.model.id,
            weights=self._kind,
            source=self._weights.source,
            device=str(self._device),
            dtype=self._code,
            kernel=self._kernel,
            prompt_ids=prompt.ids,
            steps=observer.observed_steps(),
            not_observed=observer.steps.not_observed,
        )


def _weights(graph: Graph, options: Options, device: torch.device) -> CheckpointWeights | RandomWeights:
    dtype = devices.float_dtype(options.dtype) if options.dtype else None
    if options.weights is not None:
        return CheckpointWeights(graph, options.weights, device=device, dtype=dtype)
    dtype = dtype or devices.float_dtype(graph.model.dtype)
    return RandomWeights(graph, dtype=dtype, device=device, seed=options.seed)


def _rate(tokens: int, seconds: float) -> float | None:
    return tokens / seconds if tokens and seconds > 0 else None


def _length_note(graph: Graph, positions: int) -> tuple[str, ...]:
    own = graph.model.context_length
    if own is None or positions <= own:
        return ()
    return (f"{positions:,} positions exceed the model's context length of {own:,}",)
