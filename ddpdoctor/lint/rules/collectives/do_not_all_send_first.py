"""Every rank sends first, or nobody sends what is waited for.

## What it does
Finds `dist.send` followed by `dist.recv` (or the reverse) with a peer that is computed, in code
that every rank runs. And a `recv` whose tag no `send` of the program has, in any round or rank.

## Why is this bad?
`send` may return only when the peer receives. Where all ranks send first, nobody receives; where
all receive first, nobody sends.

## Example
```python
dist.send(mine, dst=peer)
dist.recv(theirs, src=peer)
```

## Use instead
```python
ops = [dist.P2POp(dist.isend, mine, peer), dist.P2POp(dist.irecv, theirs, peer)]
for work in dist.batch_isend_irecv(ops):
    work.wait()
```
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from ddpdoctor.lint.engine.interpreter.program import Run
from ddpdoctor.lint.engine.interpreter.tree import Event, Way, caller, events
from ddpdoctor.lint.engine.interpreter.values import EVERYONE, RANKS, Const, Term, Value
from ddpdoctor.lint.engine.queries.doing import doers
from ddpdoctor.lint.engine.queries.exchanging import never_sent, rings
from ddpdoctor.lint.engine.queries.order import is_after
from ddpdoctor.lint.rule import About, Hit, Related

ABOUT = About(code="DDP417", name="send-recv-deadlock", confidence="likely")


def check(run: Run) -> Iterator[Hit]:
    """Yield the first of the blocking calls by which ranks wait for each other."""
    told: set[int] = set()
    for every, first, second in (*_in_one_order(run), *_in_a_ring(run)):
        if id(first.node) in told:
            continue
        told |= {id(first.node), id(second.node)}
        word = "send" if first.kind == "send" else "receive"
        done = f"every rank {word}s" if every else f"some ranks {word}"
        yield Hit(
            first.node,
            f"{done} first: each waits for a peer that does the same",
            notes=(Related.at(second.place, "the other half"),),
            help="even ranks send first and odd ones receive, or dist.batch_isend_irecv",
            path=first.path,
        )
    yield from _never_sent(run)


def _never_sent(run: Run) -> Iterator[Hit]:
    """Receives that wait for a tag that no message has."""
    notes: dict[int, tuple[Event, list[Related]]] = {}
    for (receive, way), (send, to) in never_sent(run):
        _, told = notes.setdefault(id(receive.node), (receive, []))
        told += [*_asked(way), Related.at(send.place, "this sends others"), *_asked(to)]
    for receive, told in notes.values():
        yield Hit(
            receive.node,
            "some rank waits for a message with a tag that nobody sends",
            notes=tuple(dict.fromkeys(told)),
            help="give what belongs together one tag on both sides",
            path=receive.path,
        )


def _asked(way: Way) -> Iterator[Related]:
    """The call that says which tag it is."""
    called = caller(way)
    if called is not None:
        yield Related.at(called.place, f"{called.name}() is given the tag")


def _in_one_order(run: Run) -> Iterator[tuple[bool, Event, Event]]:
    """Two calls that all ranks surely make one after the other, whoever their peers are."""
    for (first, at), (second, to) in pairwise(events(run.root, "send", "recv")):
        if first.kind != second.kind and _is_for_each(run, first) and _is_for_each(run, second):
            one, other = doers(at), doers(to)
            is_next = is_after(at, to)  # not the other arm of an `if`, for another of the pairs
            if one.mask == EVERYONE and one.is_clear() and one == other and is_next:
                yield True, first, second


def _in_a_ring(run: Run) -> Iterator[tuple[bool, Event, Event]]:
    """Two calls in which ranks are that wait for each other, where all peers are known."""
    found = [ring for ring in rings(run) if len({each.kind for each in ring}) == 1]
    for ring in found:
        alike = sum(len(each) for each in found if each[0].kind == ring[0].kind)
        yield alike == RANKS, ring[-1], ring[0]


def _is_for_each(run: Run, event: Event) -> bool:
    """Whether ranks have different peers: one for all is a server, or a chief.

    Who has sent something before is served. So may be whoever a function is given that nobody is
    seen to call, but for a number of the rank.
    """
    peer = event.values.get("peer")
    if peer is None or isinstance(peer.what, Const) or _has_sent(run, peer):
        return False
    return run.is_entry or peer.agree.kind == "rank"


def _has_sent(run: Run, peer: Value) -> bool:
    """Whether it is the rank that a receive has told, which had waited for whoever sends."""
    what = peer.what
    if not isinstance(what, Term) or what.op != "lib":
        return False
    given_by = run.vm.library.find(str(what.args[0]))
    return given_by is not None and given_by.option("kind") == "recv"
