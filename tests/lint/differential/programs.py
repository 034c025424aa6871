"""Random programs of ranks, in the words of Python that scripts are written in.

A program moves ranks and constants about - by names, lists, dictionaries, attributes, calls,
closures - and has collectives under conditions on what has arrived where. Every condition asks
whether a number is odd: whoever mixes up two values mixes up what all ranks answer alike with what
each answers for itself.
"""

from __future__ import annotations

import random
import re
from collections import ChainMap

HEAD = """\
import collections
import contextlib
import copy
import enum
import functools
import itertools
import os
import types
from dataclasses import dataclass, replace

import torch
import torch.distributed as dist


def itself(q):
    return q


def main():
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    odd = rank % 2 == 1
    numbers = [rank, 0]
    options = {"x": rank, "y": 1}
    t = torch.zeros(1)
"""
KNOWN = {"rank": "int", "odd": "bool", "numbers": "list", "options": "dict", "itself": "function"}
TAIL = """

if __name__ == "__main__":
    main()
"""
_TOKEN = re.compile(r"<([^<>\n]+)>")
_EXPRESSIONS = {
    "int": """rank | rank | dist.get_rank() | <digit> | <digit> | <known int> | <known int>
        | <known int> | (<int> + <digit>) | (<int> - <digit>) | <known list>[0] | <known list>[-1]
        | <known dict>["x"] | <known dict>["y"] | <known dict>.get("z", <int>) | len(<known list>)
        | (<int> if <bool> else <int>) | (<int>, <int>)[<bit>] | next(iter(<known list>))
        | [<int>, <int>, <int>][1:][<bit>] | [<int>, <int>][::-1][0] | <known function>(<int>)""",
    "bool": """<int> % 2 == <bit> | <int> % 2 == <bit> | <int> % 2 != <bit> | not <int> % 2 == <bit>
        | <known bool> | <known bool> | "z" in <known dict>""",
    "list": """[<int>, <int>] | [<int>, <int>, <int>] | [<int>] | <known list> | <known list>[:1]
        | <known list>[::-1] | <known list> + [<int>] | [<int>] * 2 | [*<known list>, <int>]
        | list(<known list>) | <known list>.copy() | list(<known dict>.values())
        | list(map(lambda e: e + <digit>, <known list>)) | [e for e in <known list>]
        | [e + <digit> for e in <known list>] | list(reversed(<known list>))
        | list(itertools.chain(<known list>, [<int>])) | copy.deepcopy(<known list>)""",
    "dict": """{"x": <int>, "y": <int>} | dict(x=<int>, y=<int>) | {**<known dict>, "x": <int>}
        | dict(zip(["x", "y"], [<int>, <int>])) | <known dict> | {"y": 0} | {"x": <int>}
        | {k: <int> for k in ("x", "y")} | dict(<known dict>, x=<int>)""",
    "collective": "dist.barrier() | dist.all_reduce(t) | dist.broadcast(t, src=0)",
}
_STATEMENTS = """
<n:int> = <int>
--
<n:int> = <int>
--
<b:bool> = <bool>
--
<xs:list> = <list>
--
<d:dict> = <dict>
--
<collective>
--
<own int> = <int>
--
<own int> += <digit>
--
<n:int>, <m:int> = <int>, <int>
--
<n:int> = <m:int> = <int>
--
(<n:int>, <m:int>), <k:int> = (<int>, <int>), <int>
--
<n:int>, *<xs:list> = <known list>
--
<known list>.append(<int>)
--
<known list>.insert(0, <int>)
--
<n:int> = <known list>.pop()
--
<known list>[0] = <int>
--
<known list>.reverse()
--
<known list> += [<int>]
--
<known dict>["x"] = <int>
--
<known dict>.update(y=<int>)
--
<n:int> = <known dict>.pop("y", <int>)
--
<n:int> = <known dict>.setdefault("z", <int>)
--
<n:int> = int(f'{<int>},{<int>}'.split(",")[<bit>])
--
os.environ["<key>"] = str(<int>)
<n:int> = int(os.environ["<key>"])
--
<q> = collections.deque([<int>, <int>])
<q>.<append|appendleft>(<int>)
<n:int> = <q>.<pop|popleft>()
--
<q> = collections.defaultdict(int)
<q>["x"] += <int>
<n:int> = <q>["<x|y>"]
--
<s> = types.SimpleNamespace(a=<int>, b=<int>)
<s>.<a|b> = <int>
<n:int> = getattr(<s>, "<a|b>")
--
<w> = functools.partial(lambda a, b: <a|b>, <int>)
<n:int> = <w>(<int>)
--
<s> = {"run": {"a": <int>}, "b": [<int>]}
<s>["run"]["a"] = <int>
<n:int> = <s>["<run|run>"]["a"]
--
if <bool>:
    <block>
--
if <bool>:
    <collective>
--
if <bool>:
    <block>
elif <bool>:
    <block>
else:
    <block>
--
for <i:int> in (<int>, <int>):
    <block>
--
for <i> in range(<digit>):
    <block>
--
for <i> in range(<int> % 2 + 1):
    <collective>
--
<w> = <int> % 2 + 1
while <w> > 0:
    <w> -= 1
    <collective>
--
match <int> % 2:
    case <bit>:
        <block>
    case _:
        <block>
--
try:
    if <bool>:
        raise ValueError
    <block>
except ValueError:
    pass
--
with contextlib.suppress(KeyError, ValueError):
    if <bool>:
        raise KeyError
    <block>
--
<n:int> = <int>
try:
    <n> = <int>
finally:
    <block>
--
top
def <f>(a, b=<int>):
    if a % 2 == <bit>:
        return <a|b|rank>
    return <a|b|1>
<n:int> = <f>(<int>, b=<int>)
--
top
def <f>(a):
    <block>
    return a
<n:int> = <f>(<int>)
--
top
def <f:function>(q):
    return <q|1|rank>
<n:int> = <f>(<int>)
--
top
def <f>(k):
    def inner(q):
        return <k|q>
    return inner
<n:int> = <f>(<int>)(<int>)
--
top
<n:int> = <int>
def <f>():
    nonlocal <n>
    <n> = <int>
<f>()
--
top
def <f>(q, seen=[]):
    seen.append(q)
    return seen[<0|-1>]
<f>(<int>)
<n:int> = <f>(<int>)
--
top
def <f>(*args, **options):
    return <args[0]|args[-1]|options["k"]|options.get("k")>
<n:int> = <f>(<int>, *[<int>, <int>], k=<int>)
--
top
def <dec>(function):
    @functools.wraps(function)
    def wrapped(*args):
        if <bool>:
            return function(*args)
    return wrapped
@<dec>
def <f>(q):
    <collective>
<f>(<int>)
--
top
@dataclass
class <C>:
    a: int
    b: int = <digit>
    @property
    def main(self):
        return self.<a|b> % 2 == <bit>
<o> = <C>(<int>, b=<int>)
<o>.a = <int>
<o> = replace(<o>, <a|b>=<int>)
<b:bool> = <o>.main
--
top
<C> = collections.namedtuple("<C>", "a b")
<n:int>, <m:int> = <C>(<int>, b=<int>)
<k:int> = <C>(<int>, <int>)._replace(a=<int>).<a|b>
--
top
class <C>:
    shared = <int>
    @classmethod
    def put(cls, q):
        cls.shared = q
<C>.put(<int>)
<n:int> = <C>().shared
--
top
class <C>:
    def __init__(self, q, *rest):
        self.q, self.rest = q, list(rest)
    def __call__(self, w):
        return <self.q|w>
    def __getitem__(self, i):
        return self.rest[i]
    def __enter__(self):
        return self.q
    def __exit__(self, *error):
        self.q = <int>
    def __bool__(self):
        return self.q % 2 == <bit>
<o> = <C>(<int>, <int>, <int>)
<n:int> = <o>(<int>)
<m:int> = <o>[<bit>]
if <o>:
    <collective>
with <o> as <k:int>:
    pass
<j:int> = <o>.q
--
top
class <P>:
    def __init__(self, q):
        self.q = q
    def wants(self):
        return self.q % 2 == <bit>
    def go(self):
        if self.wants():
            <collective>
class <Q>(<P>):
    def wants(self):
        return <True|False|not super().wants()>
<o> = <P|Q>(<int>)
<o>.go()
--
top
class <H>:
    def __init__(self):
        self.hooks = []
    def add(self, hook):
        self.hooks.append(hook)
    def fire(self):
        for hook in self.hooks:
            hook()
def <f>():
    if <bool>:
        return
    <collective>
<h> = <H>()
<h>.add(<f>)
<h>.fire()
--
top
@contextlib.contextmanager
def <f>(q):
    if q % 2 == <bit>:
        <collective>
    yield <q|1>
with <f>(<int>) as <n:int>:
    <block>
--
top
class <E>(enum.Enum):
    A = 0
    B = 1
<n:int> = <E>.<A|B>.value
"""
_PLAIN = 8
"""So many of the expressions of a number, the first, hold no other."""
_DEEPEST = 2


def program(seed: int) -> str:
    """A program, the same for the same seed."""
    return HEAD + _Writer(random.Random(seed)).statements(0, 12) + "    dist.barrier()\n" + TAIL


class _Writer:
    """Writes statements; knows which names there are, and of which kind."""

    def __init__(self, chance: random.Random) -> None:
        self.chance = chance
        self.count = 0
        self.kinds: ChainMap[str, str] = ChainMap(dict(KNOWN))
        self.own: set[str] = set()
        """What may be set here: a function has no names of those around it."""

    def statements(self, depth: int, number: int) -> str:
        """So many, at this depth of blocks."""
        return "".join(self._statement(depth) for _ in range(number))

    def _statement(self, depth: int) -> str:
        chosen = self.chance.choice(_STATEMENTS.split("\n--\n")).strip("\n").split("\n")
        if chosen[0] == "top":
            chosen = chosen[1:] if not depth else ["<n:int> = <int>"]
        if depth > _DEEPEST and any("<block>" in each for each in chosen):
            chosen = ["<collective>"]
        if not self.own and any("<own" in each for each in chosen):
            chosen = ["<n:int> = <int>"]
        names: dict[str, str] = {}
        made: dict[str, str] = {}
        lines = []
        for line in chosen:
            inner = len(line) - len(line.lstrip())
            if "<block>" in line:
                lines.append(self._block(depth, inner, chosen[0], made))
            else:
                lines.append("    " * (depth + 1) + self._written(line, names, made) + "\n")
        self.kinds.update(made)
        self.own |= {name for name, kind in made.items() if kind == "int"}
        return "".join(lines)

    def _block(self, depth: int, inner: int, head: str, made: dict[str, str]) -> str:
        own, self.own = self.own, set() if head.startswith(("def", "@")) else set(self.own)
        self.kinds = self.kinds.new_child(dict(made))
        try:
            return self.statements(depth + inner // 4, self.chance.randint(1, 2))
        finally:
            self.kinds, self.own = self.kinds.parents, own

    def _written(self, line: str, names: dict[str, str], made: dict[str, str]) -> str:
        def of(token: re.Match[str]) -> str:
            name, _, kind = token[1].partition(":")
            if not kind and (name in _EXPRESSIONS or name.split()[0] in ("known", "own")):
                return self.expression(name)
            if name in ("digit", "bit"):
                return str(self.chance.randint(0, 3 if name == "digit" else 1))
            if "|" in name:
                chosen = self.chance.choice(name.split("|"))
                return names.get(chosen, chosen)
            if name not in names:
                self.count += 1
                names[name] = f"{name}{self.count}"
            if kind:
                made[names[name]] = kind
            return names[name]

        return _TOKEN.sub(of, line)

    def expression(self, kind: str, depth: int = 0) -> str:
        """An expression of this kind; `known int` is a name of one."""
        if kind.startswith(("known", "own")):
            among, _, kind = kind.partition(" ")
            names = sorted(name for name, of in self.kinds.items() if of == kind)
            return self.chance.choice([x for x in names if among == "known" or x in self.own])
        choices = _EXPRESSIONS[kind].split("|")
        if depth > 1 and kind == "int":
            choices = choices[:_PLAIN]
        chosen = self.chance.choice(choices).strip()
        return _TOKEN.sub(
            lambda token: (
                str(self.chance.randint(0, 3 if token[1] == "digit" else 1))
                if token[1] in ("digit", "bit")
                else self.expression(token[1], depth + 1)
            ),
            chosen,
        )
