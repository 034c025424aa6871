"""What ranks write down, record by record. Times are seconds of CLOCK_MONOTONIC of one host."""

from __future__ import annotations

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field

from ddpdoctor.evidence.checking import checked
from ddpdoctor.evidence.place import Place as Place


@dataclass(frozen=True, slots=True)
@checked
class Collective:
    """One collective (or send/recv) as one rank issued it."""

    group: str
    """Name of the process group; "0" is the default group, "(groups)" the making of groups."""
    seq: int
    """Number of the collective within its group, on this rank, from 1.

    Of a send or recv: its number among those in the same direction between the same two ranks.
    """
    op: str
    """all_reduce, broadcast, barrier, ..."""
    begun: float
    place: Place | None = None
    """The user's line that issued it; None for what DDP issues from C++."""
    shapes: tuple[tuple[int, ...], ...] = ()
    dtype: str = ""
    root: int | None = None
    reduce_op: str | None = None
    at_exit: bool = False
    """Issued while the interpreter was already exiting (an atexit hook)."""
    peer: int | None = None
    """For send and recv: the global rank at the other end; None if any rank will do."""
    tag: int = 0
    way: tuple[Place, ...] = ()
    """The user's frames that led to it, outermost first."""
    content: str = ""
    """Digest of a small floating input of a reduction, of calls that were looked at closely."""
    values: tuple[float, ...] = ()
    """The input of a sum itself, if it is of few numbers, of such calls."""
    some: tuple[float, ...] = ()
    """Otherwise a few sums of its numbers, always of the same places; of integers in any case."""
    losses: tuple[float, ...] = ()
    """The losses that its lines hold, each a mean, where it is a sum of single numbers."""
    means: tuple[float, ...] = ()
    """By each of `values` the average that it is, or is the total to, of what a line has read one
    by one; 0 where it is none."""
    terms: tuple[int, ...] = ()
    """By each of these averages, of how many numbers it is; 0 where that is not known."""
    input: str = ""
    """Digest of what a small all_reduce or broadcast was given, of such calls of the user's own."""
    gradient: str = ""
    """Whose gradient is reduced, as a backward pass has left it; seen of steps without a DDP that
    are looked at."""
    labels: tuple[tuple[str, ...], ...] = ()
    """What is reduced, in words: a variable, and its word, or the keys of the dictionary it is."""
    step: int = 0
    """Optimizer steps taken before, where there are labels."""
    counted: bool = False
    """A count is among them: the quotient of two sums is the same however many added."""
    aliased: bool = False
    """Tensors that it is to fill share their memory."""
    graph: bool = False
    """What was put in carries a graph."""
    in_join: bool = False
    """The user's own line called it, inside of `Join`."""
    again: bool = False
    """What is reduced in place is the very tensor of such a call before."""


MAKING_GROUPS = "(groups)"
"""Making a group is a collective of all ranks, too, although at the store; its shape, members."""


EXCHANGES = frozenset(
    {"all_gather", "all_to_all", "reduce_scatter", "send", "recv", "gather", "scatter"}
)
"""Operations that give the ranks each other's tensors."""


def pair_key(group: str, op: str, peer: int | None, tag: int) -> str:
    """Under which the sends or recvs between this rank and `peer` are counted."""
    return f"{group}|{op}|{peer}|{tag}"


@dataclass(frozen=True, slots=True)
@checked
class ExceptionRecord:
    """An exception that ended the rank, or one of its chain."""

    type: str
    message: str
    frames: tuple[Place, ...]
    """Outermost first, library frames included."""
    time: float
    place: Place | None
    """The innermost frame that is the user's own."""
    cause: ExceptionRecord | None = None
    """What it was raised from, or while handling."""
    out_of: str = ""
    """Where it was seen passing: backward, collective, loader, exit; "" if it ended the rank."""
    user: tuple[Place, ...] = ()
    """The frames that are the user's own, outermost first."""
    reader: Place | None = None
    """The user's line that read from a loader whose worker raised it."""


@dataclass(frozen=True, slots=True)
@checked
class Warned:
    """Something that Python warned of."""

    category: str
    message: str
    place: Place | None
    time: float


@dataclass(frozen=True, slots=True)
@checked
class FileEvent:
    """A file that was saved, loaded, renamed into place or deleted, or a folder made or removed."""

    action: str
    """save, load, replace, unlink, mkdir or rmtree."""
    path: str
    begun: float
    ended: float | None
    place: Place | None
    error: str = ""
    """Type and message, if it failed."""
    keys: tuple[str, ...] = ()
    """Top-level keys of the saved dictionary."""
    source: str = ""
    """For replace: the path that was renamed."""
    by: str = "torch"
    """The library whose save or load it was: torch, safetensors, numpy, pickle or json."""
    step: int = 0
    """Optimizer steps taken before it."""
    way: tuple[Place, ...] = ()
    """The user's frames that led to it, outermost first."""


@dataclass(frozen=True, slots=True)
@checked
class Sampler:
    """A DistributedSampler as it was built."""

    length: int
    num_replicas: int
    rank: int
    seed: int
    shuffle: bool
    place: Place | None
    drop_last: bool = False
    type: str = "DistributedSampler"
    """Its class."""


@dataclass(slots=True)
@checked
class Epoch:
    """One pass over a loader, as far as it got."""

    begun: float
    place: Place | None
    """The line that iterates."""
    sampler_epoch: int | None = None
    """The epoch that the sampler shuffles for."""
    told: int = 0
    """How often set_epoch had been called."""
    batches: int = 0
    """Batches drawn, at least; exactly if it has ended, and for the first 16 of early epochs."""
    reached: int = 0
    """Batches drawn when the rank was last seen to stand still in it."""
    steps: int = 0
    """Optimizer steps between its first and its last batch."""
    graded: bool = False
    """A batch was drawn while gradients were enabled."""
    order: int | None = None
    """Digest of the indices in the order in which they were drawn, up to `batches`."""
    content: tuple[str, ...] = ()
    """Digests of the first batches; "" for one that could not be read."""
    rows: int | None = None
    """Samples of one of the first batches."""
    fed: int | None = None
    """Samples that the DDP model was given of that batch, in its first pass."""
    ended: float | None = None
    """When the loader was exhausted."""
    mixed: tuple[str, ...] = ()
    """The states of generators that its samples were shuffled from, as it began."""
    mixed_at: Place | None = None
    """The line that shuffles."""
    way: tuple[Place, ...] = ()
    """The user's frames that led to it, innermost last."""


@dataclass(slots=True)
@checked
class Loader:
    """A DataLoader that was iterated."""

    place: Place | None
    """The line that built it."""
    dataset: str
    """Class of its dataset, below all Subsets."""
    length: int | None
    """Samples of its dataset, or of its Subset."""
    batches: int | None
    """How many batches torch's own samplers will give; None where that cannot be known."""
    iterable: bool
    workers: int
    plain: bool
    """Goes through the whole dataset once, by torch's own sequential or random sampler."""
    identity: str
    """Digest of the dataset below all Subsets; "" if parts of it cannot be seen."""
    listings: dict[str, tuple[str, str]]
    """Attributes that list files: digests in their order and regardless of it."""
    by_rank: bool
    """The code of the dataset, or that of the loop, deals samples out by rank."""
    members: tuple[int, ...] | None
    """A sample of the indices of the Subset, the same fixed sample of indices on every rank."""
    members_place: Place | None
    """The line that built the Subset."""
    sampler: Sampler | None
    """The distributed sampler that it draws from."""
    batch_size: int | None = None
    elements: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Attributes with one element for each sample: digests in their order and regardless of it."""
    made_at: Place | None = None
    """The constructor of its dataset; of a stream, what gives its samples."""
    deals: dict[str, tuple[int, Place]] = field(default_factory=dict)
    """Attributes that the user's own sampler goes by: the number, and the line that reads it."""
    shared_by: dict[str, int] = field(default_factory=dict)
    """Numbers that the sampler of a library other than torch holds."""
    epochs: dict[int, Epoch] = field(default_factory=dict)
    """By number, from 1. Of many short ones only some are written down."""

    @property
    def trains(self) -> bool:
        """Whether its batches were followed by optimizer steps."""
        return any(epoch.steps for epoch in self.epochs.values())


@dataclass(frozen=True, slots=True)
@checked
class StateLoad:
    """One load_state_dict, of a module or an optimizer."""

    time: float
    of: str
    """wrapper (a DDP), module or optimizer."""
    name: str
    """Its class."""
    strict: bool
    keys: int
    """How many parameters a module has."""
    missing: int
    unexpected: int
    prefixed: bool
    """What did not fit differs from what was wanted by a leading "module."."""
    place: Place | None
    content: str = ""
    """Digest of what was loaded, where it is a module's."""
    wrapper: int | None = None
    """The DDP that was loaded into."""
    changed: bool = False
    """What was in that DDP was something else."""
    step: int = 0
    """Optimizer steps taken."""
    way: tuple[Place, ...] = ()
    """The user's frames that led to it, outermost first."""
    cut: tuple[str, ...] = ()
    """A key that was left over, and the missing one that it is the end of, if all were such."""


@dataclass(slots=True)
@checked
class Wrapper:
    """A DistributedDataParallel as it was built, and what became of its parameters."""

    place: Place | None
    parameters: tuple[str, ...]
    """Names of the parameters that need gradients, in DDP's own order of indices."""
    find_unused: bool
    static_graph: bool
    without_gradient: tuple[str, ...] = ()
    """Parameters that had no gradient when the optimizer stepped, or when the reducer gave up."""
    unreferenced: tuple[str, ...] = ()
    """Those of them whose module no method of its parent ever names: dead, whatever the data."""
    registered: tuple[Place, ...] = ()
    """The lines that register the dead ones, without repetition."""
    uses: tuple[Place, ...] = ()
    """Of what the reducer gave up for: the lines that read the modules which hold it."""
    ranks: tuple[int, ...] = ()
    """Global ranks that share it."""
    sizes: tuple[int, ...] = ()
    """Elements of each of the parameters."""
    frozen: tuple[str, ...] | None = None
    """Of what the reducer gave up for: what needs no gradient any more. None: nobody has looked."""
    freezes: tuple[Place, ...] = ()
    """The line that freezes, where the source has one alone."""


@dataclass(frozen=True, slots=True)
@checked
class Training:
    """How one optimizer's steps used one wrapper, until its latest sample."""

    wrapper: int
    optimizer: int
    steps: int
    windows: Mapping[str, int]
    """How many steps came after which passes, a letter for each forward pass since the step before:
    s a reduction followed it, a none did, n it was under no_sync."""
    reductions: int
    """Forward passes that a reduction has followed, ever."""
    still_since: int = 0
    """The step from which on all learning rates were zero; 0 if the latest were not."""
    still_counted: int = 0
    """Steps that a learning-rate schedule of the optimizer had counted by then."""
    repeats: tuple[int, ...] = ()
    """Of the latest sampled steps: how many passes of one and the same line were reduced."""
    kept_out: str = ""
    """Why the ranks may differ on purpose (Join, comm hook, closure); empty if they may not."""
    always_used: bool | None = None
    """With find_unused_parameters: whether every pass used every parameter."""
    graphs_kept: int = 0
    """Of how many sampled steps the graph was still alive at a later one."""
    late_backward: bool = False
    """A pass under no_sync had its backward outside of it."""
    overtaken: bool = False
    """Another optimizer had stepped since the last pass, before a step that was looked at."""
    clipped_early: int = 0
    """How often gradients were clipped before they were reduced."""
    clipped_scaled: int = 0
    """How often gradients were clipped while they were scaled."""
    rows_back: int = 0
    """Rows of what the model gave that a gradient came back of, in sampled passes."""
    rows_used: int = 0
    """Those of them whose gradient was not zero."""
    places: Mapping[str, Place] = field(default_factory=dict)
    """Lines: step, forward, held forward, backward, late backward, clip, bypass, and what
    calls that, grad."""


@dataclass(frozen=True, slots=True)
@checked
class Sample:
    """Digests of what a rank held just before an optimizer step, by name."""

    optimizer: int
    step: int
    """From 1; one more than the steps taken where it is the last."""
    parameters: Mapping[str, str]
    wrapper: int | None = None
    """None: parameters that the optimizer trains and that no wrapper holds."""
    gradients: Mapping[str, str] = field(default_factory=dict)
    rates: tuple[float, ...] = ()
    """Learning rates of the optimizer's groups."""
    rates_so_far: str = ""
    """Digest of those of all steps until this one."""
    few: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    """Some elements of the parameters, by name."""
    reductions: int = 0
    """Forward passes that a reduction has followed, ever."""
    late: tuple[str, ...] = ()
    """Those with a gradient that were not there, or frozen, when the model was wrapped."""
    place: Place | None = None
    """The line that steps, where no `Training` tells it."""
    clipped: Mapping[str, str] = field(default_factory=dict)
    """Digests of what clip_grad_norm_ has left of gradients that no_sync() had kept local."""
    clip_bit: bool = False
    """Whether their norm was over the limit."""
    clipped_at: Place | None = None
    noise: str = ""
    """Digest of the random state that the model's dropout will draw from next, if it has any."""
    resting: tuple[str, ...] = ()
    """Modules in evaluation mode, the first few."""
    time: float = 0.0


@dataclass(frozen=True, slots=True)
@checked
class ModelCopy:
    """A copy that was made of a model before it was wrapped."""

    wrapper: int
    places: tuple[Place, ...]
    """The user's lines on the way to the copying, innermost first."""
    parameters: Mapping[str, str]
    """Digests by name, as of the wrapper's first sample."""
    number: int = 0
    """Of those made before this wrap."""
    again: bool = False
    """As of the next sample."""


@dataclass(frozen=True, slots=True)
@checked
class Seed:
    """A call of `torch.manual_seed` in the user's code."""

    value: int
    place: Place | None
    way: tuple[Place, ...] = ()
    """The user's frames that led to it, outermost first."""
    wrappers: int = 0
    """How many DDPs had been built."""


@dataclass(frozen=True, slots=True)
@checked
class Plateau:
    """A call of `ReduceLROnPlateau.step`."""

    number: int
    metric: float
    place: Place | None
    time: float = 0.0
    again: bool = False
    """Whether the same scheduler had been told this very metric just before, with no step since."""


@dataclass(frozen=True, slots=True)
@checked
class Group:
    """A process group that this rank joined."""

    name: str
    ranks: tuple[int, ...]
    """Global ranks of the members."""
    backend: str
    timeout: float
    """Seconds after which a collective of this group gives up."""
    place: Place | None


@dataclass(frozen=True, slots=True)
@checked
class Stuck:
    """The heartbeat's view of a main thread that has idled in one call between two beats."""

    since: float
    """First beat at which it was seen there."""
    seen: float
    """Latest beat at which it was still there."""
    stack: tuple[Place, ...]
    """Main thread, outermost first, library frames included."""
    place: Place | None
    """The innermost frame that is the user's own."""
    waiting: tuple[Collective, ...]
    """Collectives that were issued and have not completed, oldest first."""
    issued: Mapping[str, int] = field(default_factory=dict)
    """How many collectives this rank has issued, by group, those that DDP issues included.

    Sends and recvs are counted by `pair_key`.
    """
    other_threads_communicate: bool = False
    """Another thread of this rank has issued collectives: it might yet issue the missing one."""
    awaited: Collective | None = None
    """The one that the main thread is waiting in, where that is known."""

    @property
    def alike(self) -> tuple[int, ...]:
        """Which wait it is: one for ranks that wait alike, which share its parts, times aside."""
        return id(self.waiting), id(self.stack), id(self.issued), id(self.awaited)


@dataclass(frozen=True, slots=True)
@checked
class Fate:
    """How a rank's process ended, as its parent saw it."""

    rank: int
    pid: int
    exit_code: int | None
    """None if a signal ended it."""
    signal: int | None
    time: float
    killed_by_us: bool = False
    """The launcher ended it, after a verdict, a deadline or an interrupt."""
    out_of_memory: bool = False
    """The kernel says that it has killed it, for want of memory."""


def signal_name(number: int) -> str:
    """SIGKILL for 9; the number itself where it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
