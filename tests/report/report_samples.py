"""A report as `check --nproc 4` makes it, with every status that a verdict can have."""

from datetime import UTC, datetime

from ddpdoctor.catalog import Cure, Finding, Kind, RankPlace, Status, Verdict
from ddpdoctor.check.telling import CheckReport, Heading
from ddpdoctor.evidence import Place

ADVICE_FOR_SAMPLER = "000 error 1"
ADVICE_FOR_UNUSED = "000 error 3"
ADVICE_FOR_SOLVER = "004 fix 2"


def heading(code: str, title: str, symptom: str, summary: str, remedy: str) -> Heading:
    return Heading.model_validate(
        {
            "code": code,
            "title": title,
            "symptoms": (symptom,),
            "severity": "error",
            "summary": summary,
            "remedy": remedy,
        }
    )


def finding(
    code: str, title: str, ranks: tuple[int, ...], file: str, line: int, doing: str, cause: str
) -> Finding:
    place = Place(f"/home/ada/reproducers/{file}", line, "broken")
    return Finding(
        code=code,
        title=title,
        severity="error",
        certainty="proven",
        ranks=ranks,
        places=(RankPlace(ranks=ranks, place=place, doing=doing),),
        cause=cause,
        cure=Cure(text="Write to a temporary file, rename it, then share the outcome."),
    )


def verdict(
    code: str,
    kind: Kind,
    variant: str,
    status: Status,
    summary: str,
    evidence: str,
    *findings: Finding,
    source: str = "",
    launches: tuple[int, int] = (0, 1),
) -> Verdict:
    return Verdict(
        code=code,
        variant=variant,
        kind=kind,
        status=status,
        summary=summary,
        evidence=evidence,
        source=source,
        findings=findings,
        failed_launches=launches[0],
        launches=launches[1],
        seconds=0.25,
    )


PITFALLS = (
    heading(
        "DDP101",
        "dict-config",
        "crash",
        "Distributed set-up reads the configuration while it is still a dict.",
        "Parse and freeze the configuration first, then join the process group.",
    ),
    heading(
        "DDP201",
        "premature-sampler",
        "crash",
        "A DistributedSampler is built before the process group exists.",
        "Join the process group first, or pass num_replicas and rank.",
    ),
    heading(
        "DDP301",
        "unused-parameters",
        "crash",
        "Parameters that take no part in the loss leave the reducer waiting for their gradients.",
        "Delete or freeze dead parameters; keep find_unused_parameters for true branches.",
    ),
    heading(
        "DDP501",
        "checkpoint-race",
        "crash",
        "A rank loads a checkpoint while rank 0 is still writing it.",
        "Write to a unique temporary file, rename it, then share the outcome with every rank.",
    ),
    heading(
        "DDP504",
        "ema-deadlock",
        "hang",
        "A torn read at the EMA refresh kills one rank; its barrier at exit deadlocks the rest.",
        "Save atomically, share the outcome, and register no barrier at exit.",
    ),
)

VERDICTS = (
    verdict(
        "DDP101",
        "broken",
        "setup_before_parse",
        "recognised",
        "Set up distributed training from the dict that came out of the YAML file.",
        "every rank raised AttributeError: 'dict' object has no attribute 'distributed'",
        finding(
            "DDP101",
            "dict-config",
            (0, 1, 2, 3),
            "dict_config.py",
            31,
            "raised AttributeError",
            "'dict' object has no attribute 'distributed': the configuration was not parsed yet",
        ),
        launches=(1, 1),
    ),
    verdict(
        "DDP101",
        "documented",
        "parse_in_setup",
        "holds",
        "Read the dict with .get() inside the set-up.",
        "4 ranks ended well, world size 4",
        source="000 error 2",
    ),
    verdict(
        "DDP101",
        "fix",
        "parse_then_join",
        "holds",
        "Parse and freeze the configuration, then join.",
        "4 ranks ended well, world size 4",
    ),
    verdict(
        "DDP201",
        "broken",
        "sampler_before_group",
        "misdiagnosed",
        "Build the sampler, then join the process group.",
        "expected DDP201 on ranks 0-3, the diagnosis said DDP200 on ranks 0-3",
        finding(
            "DDP200",
            "data",
            (0, 1, 2, 3),
            "premature_sampler.py",
            24,
            "raised ValueError",
            "Default process group has not been initialized",
        ),
        launches=(1, 1),
    ),
    verdict(
        "DDP201",
        "documented",
        "join_in_data_function",
        "in part",
        "Join the process group inside the data function.",
        "every sample was seen once, but the process group has two owners",
        source=ADVICE_FOR_SAMPLER,
    ),
    verdict(
        "DDP201",
        "fix",
        "explicit_replicas",
        "holds",
        "Pass num_replicas and rank: no process group is needed.",
        "4 ranks ended well, all 103 samples were seen",
    ),
    verdict(
        "DDP301",
        "broken",
        "dead_layers",
        "recognised",
        "Wrap a crystal transformer whose edge layers are registered and never used.",
        "every rank raised RuntimeError in its second forward",
        finding(
            "DDP301",
            "unused-parameters",
            (0, 1, 2, 3),
            "unused_parameters.py",
            88,
            "raised RuntimeError",
            "layers.0.lemb.weight, layers.0.lin_edge_len.weight and layers.0.lin_edge_len.bias "
            "are dead: registered, and named by no method",
        ),
        launches=(1, 1),
    ),
    verdict(
        "DDP301",
        "documented",
        "find_unused_parameters",
        "in part",
        "Wrap with find_unused_parameters=True.",
        "it runs, but three dead parameters stay hidden and are never trained",
        source=ADVICE_FOR_UNUSED,
    ),
    verdict(
        "DDP301",
        "fix",
        "delete_dead",
        "fails",
        "Delete the dead layers before the wrap.",
        "rank 2 raised AssertionError at unused_parameters.py:131: parameters differ between ranks",
    ),
    verdict(
        "DDP501",
        "broken",
        "load_while_writing",
        "recognised",
        "Load the checkpoint on every rank while rank 0 writes it.",
        "rank 3 read a file of 1.2 MB that was 4.0 MB when it was whole",
        finding(
            "DDP501",
            "checkpoint-race",
            (3,),
            "checkpoint_race.py",
            52,
            "raised RuntimeError",
            "torch.load read a file that rank 0 was still writing "
            "(PytorchStreamReader failed finding central directory)",
        ),
        launches=(3, 5),
    ),
    verdict(
        "DDP501",
        "documented",
        "check_size_on_rank_0",
        "fails",
        "Let rank 0 check that the file exists and is not empty, then a barrier.",
        "rank 1 raised EOFError at checkpoint_race.py:74: half a file is not empty either",
        source=ADVICE_FOR_SOLVER,
        launches=(2, 5),
    ),
    verdict(
        "DDP501",
        "documented",
        "barrier_before_load",
        "holds",
        "Put a barrier between the save and the load.",
        "5 of 5 launches ended well, parameters equal to the bit",
        source=ADVICE_FOR_SOLVER,
        launches=(0, 5),
    ),
    verdict(
        "DDP501",
        "fix",
        "atomic_save",
        "holds",
        "Write to a temporary file, rename it, share the outcome.",
        "5 of 5 launches ended well, parameters equal to the bit",
        launches=(0, 5),
    ),
    verdict(
        "DDP504",
        "broken",
        "refresh_at_stage_switch",
        "not reproduced",
        "Refresh the EMA from the best checkpoint at the stage switch.",
        "all 4 ranks ended well",
        launches=(0, 5),
    ),
    verdict(
        "DDP504",
        "documented",
        "unwrap_before_state_dict",
        "fails",
        "Unwrap the model before state_dict().",
        "the same deadlock: rank 2 exits in barrier(), ranks 0, 1 and 3 wait in all_reduce() #7; "
        "DDP.state_dict() is not a collective",
        source=ADVICE_FOR_SOLVER,
        launches=(1, 1),
    ),
    verdict(
        "DDP504",
        "documented",
        "longer_nccl_timeout",
        "not checked",
        "Set NCCL_TIMEOUT=3600.",
        "needs NCCL, and there is no GPU here",
        source=ADVICE_FOR_SOLVER,
    ),
    verdict(
        "DDP504",
        "fix",
        "share_the_outcome",
        "holds",
        "Save atomically and share the outcome with every rank.",
        "5 of 5 launches ended well, EMA equal to the bit",
        launches=(0, 5),
    ),
)


def report_of(*verdicts: Verdict) -> CheckReport:
    codes = {verdict.code for verdict in verdicts}
    return CheckReport(
        python="3.11.7",
        torch="2.13.0",
        platform="Linux x86_64",
        backend="gloo",
        nproc=4,
        started=datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        seconds=9.87,
        pitfalls=tuple(heading for heading in PITFALLS if heading.code in codes),
        verdicts=verdicts,
    )
