#!/bin/bash
# sbatch --array=0-99 link_slurm.sh NOTES OUTPUT KB: link NOTES/part-00000.parquet …
#SBATCH --cpus-per-task=1
#SBATCH --mem=4G
#SBATCH --requeue
set -euo pipefail
export OMP_NUM_THREADS="${SLURM_CPUS_PER_TASK:-1}"
part=$(printf 'part-%05d.parquet' "$SLURM_ARRAY_TASK_ID")
# In parts: a task that is stopped and queued again continues.
python -m spacy sapbert link "$3" "$1/$part" --keep ward --output "$2/$part" --shard-size 1000
