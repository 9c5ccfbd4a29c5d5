#!/bin/bash
# One worker of `kb build`; afterwards run the same `kb build` without `--worker`.
#   torchrun --no-python --nproc-per-node 2 bash build_worker.sh CONCEPTS KB ENCODER [OPTIONS]
#   sbatch --array=0-7 build_worker.sh CONCEPTS KB ENCODER [OPTIONS]
#SBATCH --cpus-per-task=1
#SBATCH --mem=8G
#SBATCH --requeue
set -euo pipefail
export OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"
worker="${RANK:-$SLURM_ARRAY_TASK_ID}/${WORLD_SIZE:-$SLURM_ARRAY_TASK_COUNT}"
exec python -m spacy sapbert kb build "$1" "$2" --encoder "$3" "${@:4}" --worker "$worker"
