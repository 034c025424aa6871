"""Kubernetes: a PyTorchJob of the Kubeflow training operator.

Its pods get MASTER_ADDR, PET_NNODES, PET_NODE_RANK and the like from the operator (training
operator 1.9, pkg/controller.v1/pytorch/envvar.go), and torchrun reads those that begin with PET_.
"""

from __future__ import annotations

from shlex import quote

from ddpdoctor.configure.files.launch_file import LaunchFile, Start, header, ranks_in_words, text
from ddpdoctor.configure.plan import Impossible, Plan

SHARED_MEMORY = "8Gi"


def render(plan: Plan, path: str) -> str:
    """The manifest. Raises Impossible without an image."""
    if not plan.image:
        raise Impossible("a pod needs an image: say which with --image NAME")
    lines = [
        header(
            f"{ranks_in_words(plan).replace('on this machine', 'in one pod')}, as a PyTorchJob of "
            "the Kubeflow training operator.",
            f"kubectl apply -f {quote(path)}",
        ).rstrip("\n"),
        "apiVersion: kubeflow.org/v1  # the training operator's; v2 has TrainJob instead",
        "kind: PyTorchJob  # it sets MASTER_ADDR and the ranks of nodes for torchrun",
        "metadata:",
        f"  name: {text(plan.name)}  # of the job, and the beginning of its pods' names",
        "spec:",
        f'  nprocPerNode: "{plan.nproc}"  # {plan.why_nproc}; torchrun reads PET_NPROC_PER_NODE',
        "  runPolicy:",
        "    cleanPodPolicy: Running  # ended pods stay, with their logs",
        "  pytorchReplicaSpecs:",
        "    Master:  # the first node: rank 0 is in it, and so is the store",
        *_replicas(plan, plan.image, 1),
    ]
    if plan.nodes > 1:
        lines += ["    Worker:  # the other nodes", *_replicas(plan, plan.image, plan.nodes - 1)]
    return "\n".join(lines) + "\n"


def _replicas(plan: Plan, image: str, count: int) -> list[str]:
    cpus = plan.threads * plan.nproc
    gpus = (
        [f"                  nvidia.com/gpu: {plan.nproc}  # one for each rank"]
        if plan.device == "cuda"
        else []
    )
    return [
        f"      replicas: {count}  # one pod on each node",
        "      restartPolicy: OnFailure  # a failed pod is started again, and must resume",
        "      template:",
        "        spec:",
        "          containers:",
        "            - name: pytorch  # the operator looks for a container of this name",
        f"              image: {text(image)}  # torch and your script are in it",
        "              # torchrun in every pod starts its ranks; the script alone would be one.",
        f"              command: [torchrun, {text(plan.script)}]",
        "              env:",
        f"                # {plan.why_threads}",
        "                - name: OMP_NUM_THREADS",
        f'                  value: "{plan.threads}"  # Kubernetes wants text here',
        "              resources:",
        "                limits:",
        f'                  cpu: "{cpus}"  # {plan.threads} for each rank',
        *gpus,
        "              volumeMounts:",
        "                - name: shared-memory",
        "                  mountPath: /dev/shm",
        "          volumes:",
        "            # A container has 64 MB there, and data-loader workers and NCCL need more:",
        "            # without this they die of a bus error.",
        "            - name: shared-memory",
        "              emptyDir:",
        "                medium: Memory",
        f"                sizeLimit: {SHARED_MEMORY}  # it counts as memory of the pod",
    ]


def start(plan: Plan, path: str, script: tuple[str, ...]) -> Start:
    """`kubectl apply -f FILE`; the script is in the file."""
    return Start(("kubectl", "apply", "-f", path))


def refuse(plan: Plan) -> str | None:
    """Always: a trial would be a job on somebody's cluster."""
    return "a trial would start pods on your cluster; `kubectl apply --dry-run=server` asks it"


FILE = LaunchFile("kubernetes", "kubernetes.yaml", render, start, refuse)
