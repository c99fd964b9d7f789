"""A small language model of the Llama family that generates by itself: one `while_loop`, caches of one size."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch._higher_order_ops.while_loop import while_loop

VOCABULARY, HIDDEN, HEADS, ROOM, END = 37, 32, 2, 8, 0
_WIDTH = HIDDEN // HEADS


class Norm(nn.Module):
    """Root mean square normalisation."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.rand(HIDDEN) + 0.5)

    def forward(self, x: Tensor) -> Tensor:
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-5) * self.weight


class Layer(nn.Module):
    """A decoder layer for one token: [1, HIDDEN] in and out, caches [HEADS, ROOM, width]."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.behind = Norm(), Norm()
        self.q, self.k, self.v, self.o = (nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in range(4))
        self.gate, self.up = (nn.Linear(HIDDEN, 2 * HIDDEN, bias=False) for _ in range(2))
        self.down = nn.Linear(2 * HIDDEN, HIDDEN, bias=False)

    def forward(
        self, x: Tensor, here: Tensor, past: Tensor, turn: tuple[Tensor, Tensor], cache: list[Tensor]
    ) -> Tensor:
        y = self.before(x)
        q, k, v = (linear(y).view(HEADS, 1, _WIDTH) for linear in (self.q, self.k, self.v))
        q, k = rotated(q, *turn), rotated(k, *turn)
        cache[0] = torch.where(here.view(1, ROOM, 1), k, cache[0])
        cache[1] = torch.where(here.view(1, ROOM, 1), v, cache[1])
        scores = (q @ cache[0].transpose(1, 2)) * _WIDTH**-0.5
        weights = torch.softmax(scores.masked_fill(~past.view(1, 1, ROOM), -1e4), -1)
        x = x + self.o((weights @ cache[1]).reshape(1, HIDDEN))
        y = self.behind(x)
        return x + self.down(nn.functional.silu(self.gate(y)) * self.up(y))


def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    half = _WIDTH // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


class Decoder(nn.Module):
    """Greedy generation: tokens [ROOM] begin with `given` of a prompt, and come back with what follows it."""

    def __init__(self, layers: int = 1) -> None:
        super().__init__()
        torch.manual_seed(5)
        self.embedding = nn.Embedding(VOCABULARY, HIDDEN)
        self.layers = nn.ModuleList(Layer() for _ in range(layers))
        self.norm, self.head = Norm(), nn.Linear(HIDDEN, VOCABULARY, bias=False)
        angles = torch.arange(ROOM)[:, None] * 100.0 ** (-torch.arange(0, _WIDTH, 2) / _WIDTH)
        self.register_buffer("cos", torch.cat([angles, angles], -1).cos())
        self.register_buffer("sin", torch.cat([angles, angles], -1).sin())

    def step(self, at: Tensor, tokens: Tensor, given: Tensor, *caches: Tensor) -> tuple[Tensor, ...]:
        places = torch.arange(ROOM)
        here, past = places == at, places <= at
        x = self.embedding(tokens.index_select(0, at.view(1)))
        turn = self.cos.index_select(0, at.view(1)), self.sin.index_select(0, at.view(1))
        new: list[Tensor] = []
        for number, layer in enumerate(self.layers):
            cache = list(caches[2 * number : 2 * number + 2])
            x = layer(x, here, past, turn, cache)
            new += cache
        token = self.head(self.norm(x)).argmax(-1)
        follows = (places == at + 1) & (places >= given)
        return at + 1, torch.where(follows, token, tokens), *new

    def forward(self, tokens: Tensor, given: Tensor) -> Tensor:
        def goes_on(at: Tensor, tokens: Tensor, *_caches: Tensor) -> Tensor:
            return (at < ROOM - 1) & ((at < given) | (tokens.index_select(0, at.view(1))[0] != END))

        def step(at: Tensor, tokens: Tensor, *caches: Tensor) -> tuple[Tensor, ...]:
            return self.step(at, tokens, given, *caches)

        caches = [torch.zeros(HEADS, ROOM, _WIDTH) for _ in range(2 * len(self.layers))]
        start = (torch.zeros((), dtype=torch.int64), tokens, *caches)
        return while_loop(goes_on, step, start)[1]


def prompt(*tokens: int) -> tuple[Tensor, Tensor]:
    """The inputs of a decoder for a prompt."""
    buffer = torch.full((ROOM,), END)
    buffer[: len(tokens)] = torch.tensor(tokens)
    return buffer, torch.tensor(len(tokens))


def by_hand(model: Decoder, tokens: Tensor, given: Tensor) -> Tensor:
    """What the loop of Python gives."""
    at, caches = torch.tensor(0), [torch.zeros(HEADS, ROOM, _WIDTH) for _ in range(2 * len(model.layers))]
    with torch.no_grad():
        while at < ROOM - 1 and (at < given or tokens[at] != END):
            at, tokens, *caches = model.step(at, tokens, given, *caches)
    return tokens
