#!/bin/bash
# A job on several hosts under Slurm, one doctor and one torchrun on each:
#
#     sbatch --nodes=4 --gpus-per-node=8 examples/slurm.sh train.py --epochs 90
#
# The doctor of the host with rank 0 tells the verdict; `ddpdoctor diagnose runs/JOB` tells it again.
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --output=%x-%j.out

head=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)

# What strangers on the network lack. srun hands it on to all hosts, as it does all variables.
DDPDOCTOR_TOKEN=$(head -c 32 /dev/urandom | sha256sum | cut -d ' ' -f 1)
export DDPDOCTOR_TOKEN

# The folder must be on storage that all hosts see; without --run-dir each host has one of its own,
# and the doctors meet over the network.
srun ddpdoctor run --run-dir "runs/$SLURM_JOB_ID" -- \
    torchrun \
    --nnodes "$SLURM_JOB_NUM_NODES" \
    --nproc-per-node "${SLURM_GPUS_ON_NODE:-1}" \
    --rdzv-backend c10d \
    --rdzv-endpoint "$head:29500" \
    --rdzv-id "$SLURM_JOB_ID" \
    "$@"
