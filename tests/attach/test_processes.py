"""Which processes are ranks, told from trees of processes as launchers make them."""

from collections.abc import Iterable

from ddpdoctor.attach.processes import FoundJob, Process, jobs_of


def process(pid: int, parent: int, *command: str, **environ: object) -> Process:
    words = ("python", *(command or ("train.py",)))
    return Process(pid, parent, float(pid), words, {k: str(v) for k, v in environ.items()})


def found(*processes: Process) -> list[FoundJob]:
    return jobs_of({each.pid: each for each in processes})


def ranks(job: FoundJob) -> list[tuple[int, int]]:
    return [(each.rank, each.pid) for each in job.ranks]


def torchrun(first: int, world: int, port: int) -> Iterable[Process]:
    yield process(first, 1, "-m", "torch.distributed.run", "train.py")
    for rank in range(world):
        yield process(first + 1 + rank, first, RANK=rank, WORLD_SIZE=world, MASTER_PORT=port)


def test_torchrun_itself_is_no_rank() -> None:
    (job,) = found(*torchrun(100, 2, 29500))
    assert ranks(job) == [(0, 101), (1, 102)]
    assert (job.name, job.world_size, job.counted) == ("train.py (port 29500)", 2, False)


def test_two_jobs_are_told_apart_by_their_ports() -> None:
    jobs = found(*torchrun(100, 2, 29500), *torchrun(200, 3, 29501))
    assert [len(job.ranks) for job in jobs] == [2, 3]


def test_data_loader_workers_are_no_ranks_forked_or_spawned() -> None:
    spawned = ("-c", "from multiprocessing.spawn import spawn_main; spawn_main(3)")
    workers = [
        process(300, 101, RANK=0, WORLD_SIZE=2, MASTER_PORT=29500),
        process(301, 102, *spawned, RANK=1, WORLD_SIZE=2, MASTER_PORT=29500),
        process(302, 301, *spawned),
    ]
    (job,) = found(*torchrun(100, 2, 29500), *workers)
    assert ranks(job) == [(0, 101), (1, 102)]


def test_the_ranks_of_another_machine_are_counted_by_the_world_size() -> None:
    (job,) = found(process(7, 1, RANK=5, WORLD_SIZE=8), process(8, 1, RANK=6, WORLD_SIZE=8))
    assert ranks(job) == [(5, 7), (6, 8)]
    assert job.world_size == 8


def test_children_of_mp_spawn_are_numbered_in_their_order_and_their_parent_is_none() -> None:
    (job,) = found(process(10, 1), process(12, 10), process(11, 10))
    assert ranks(job) == [(0, 11), (1, 12)]
    assert job.counted


def test_mpirun_and_srun_have_variables_of_their_own() -> None:
    (job,) = found(
        process(10, 1, OMPI_COMM_WORLD_RANK=0, OMPI_COMM_WORLD_SIZE=2),
        process(11, 1, OMPI_COMM_WORLD_RANK=1, OMPI_COMM_WORLD_SIZE=2),
    )
    assert ranks(job) == [(0, 10), (1, 11)]


def test_lightnings_main_process_is_rank_0_though_no_variable_says_so() -> None:
    (job,) = found(
        process(10, 1),
        process(11, 10, LOCAL_RANK=1, NODE_RANK=0, WORLD_SIZE=3, MASTER_PORT=4),
        process(12, 10, LOCAL_RANK=2, NODE_RANK=0, WORLD_SIZE=3, MASTER_PORT=4),
        process(13, 10),  # a data-loader worker
    )
    assert ranks(job) == [(0, 10), (1, 11), (2, 12)]
    assert not job.counted


def test_a_notebook_that_merely_holds_torch_is_no_job() -> None:
    assert found(process(10, 1, "notebook.py")) == []
