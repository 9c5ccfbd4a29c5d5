"""The commands that lead from vocabularies and corpora to all figures."""

from collections.abc import Iterator, Sequence

from benchmarks.steps import Step

CORPORA = ("ncbi_disease", "bc5cdr_disease", "bc5cdr_chemical")
ALIASES = "--aliases $DATA/mesh-rrf/aliases.tsv.gz"


def list_training(seeds: int, options: str) -> Iterator[Step]:
    """Yield the steps from a vocabulary to one encoder a seed, one fine-tuned."""
    yield Step(
        "mesh.jsonl",
        "spacy sapbert concepts $DATA/mesh-rrf --output $OUT/mesh.jsonl "
        "--cui-pattern .+",
    )
    yield Step(
        "mesh-pairs.tsv",
        "python -m training pairs $OUT/mesh.jsonl $OUT/mesh-pairs.tsv",
    )
    train = " ".join(f"$DATA/eval/{name}.train.tsv.gz" for name in CORPORA)
    yield Step(
        "train-pairs.tsv",
        f"python -m training finetune-pairs {train} --concepts $OUT/mesh.jsonl "
        f"{ALIASES} --output $OUT/train-pairs.tsv",
    )
    for seed in range(seeds):
        yield Step(
            f"trained-{seed}",
            f"python -m training train $OUT/mesh-pairs.tsv $OUT/trained-{seed} "
            f"--encoder.base $BASE --encoder.pooling mean --training.seed {seed} "
            f"{options}".rstrip(),
        )
    yield Step(
        "fine-tuned-0",
        "python -m training train $OUT/train-pairs.tsv $OUT/fine-tuned-0 "
        "--config training/configs/finetune_scientific.cfg --encoder.base "
        "$OUT/trained-0 --encoder.pooling mean",
    )


def list_comparison(
    name: str, mentions: Sequence[str], more: str, seeds: int
) -> Iterator[Step]:
    """Return the steps from a dictionary and encoders to one comparison."""
    encoders = {f"kb-{name}-base": ("base", "$BASE")}
    for seed in range(seeds):
        encoders[f"kb-{name}-trained-{seed}"] = ("trained", f"$OUT/trained-{seed}")
    encoders[f"kb-{name}-fine-tuned-0"] = ("fine-tuned", "$OUT/fine-tuned-0")
    for kb, (_, encoder) in encoders.items():
        yield Step(
            kb,
            f"spacy sapbert kb build $OUT/{name}.jsonl $OUT/{kb} --encoder {encoder} "
            "--pooling mean --backend exact --precision bf16",
        )
    kbs = " ".join(f"--kb {kind}=$OUT/{kb}" for kb, (kind, _) in encoders.items())
    yield Step(
        f"{name}.json",
        f"python -m benchmarks.compare_linkers {' '.join(mentions)} --dictionary "
        f"$OUT/{name}.jsonl {kbs} {more} --output $OUT/{name}.json",
    )


def list_significance(mentions: Sequence[str]) -> Iterator[Step]:
    """Return the steps from two encoders to what of their difference may be chance."""
    gold = " ".join(mentions)
    for name in ("base", "trained-0", "fine-tuned-0"):
        evaluate = f"spacy sapbert evaluate $OUT/kb-mesh-{name} {gold} {ALIASES}"
        if name == "base":
            command = f"{evaluate} --predictions $OUT/base.jsonl"
            yield Step("base.jsonl", command)
            continue
        output = f"significance-{name}.json"
        yield Step(
            output, f"{evaluate} --compare $OUT/base.jsonl --output $OUT/{output}"
        )


def list_medic(seeds: int) -> Iterator[Step]:
    """Return the steps of the comparisons by the protocol of the published figures."""
    yield Step(
        "medic-raw.jsonl",
        "spacy sapbert concepts $DATA/medic/medic_06Jul2012.txt.gz --format biosyn "
        "--output $OUT/medic-raw.jsonl",
    )
    yield Step(
        "medic.jsonl",
        "python -m training biosyn-names $OUT/medic-raw.jsonl $OUT/medic.jsonl",
    )
    texts = {
        "ncbi-train": "NCBItrainset_corpus",
        "ncbi-dev": "NCBIdevelopset_corpus",
        "bc5cdr-train": "CDR_TrainingSet.PubTator",
        "bc5cdr-dev": "CDR_DevelopmentSet.PubTator",
    }
    for name, file in texts.items():
        yield Step(
            f"{name}.tsv",
            "python -m training biosyn-mentions "
            f"$DATA/eval-text/{file}.txt.gz --format "
            f"pubtator --drop-prefix OMIM: --dictionary $OUT/medic.jsonl --output "
            f"$OUT/{name}.tsv",
        )
    both = [f"$OUT/{name}-dev.tsv" for name in ("ncbi", "bc5cdr")]
    seen = "--seen $OUT/ncbi-train.tsv --seen $OUT/bc5cdr-train.tsv"
    yield from list_comparison("medic", both, seen, seeds)
    for name in ("ncbi", "bc5cdr"):
        yield Step(
            f"medic-{name}.jsonl",
            f"python -m training add-mentions $OUT/medic.jsonl "
            f"$OUT/{name}-train.tsv --output $OUT/medic-{name}.jsonl",
        )
        dev, seen = f"$OUT/{name}-dev.tsv", f"--seen $OUT/{name}-train.tsv"
        yield from list_comparison(f"medic-{name}", [dev], seen, min(seeds, 1))


def list_steps(seeds: int, options: str) -> list[Step]:
    """Return all steps in order.

    seeds (int): How many encoders are trained.
    options (str): Of `python -m training train`.
    RETURNS (list[Step]): From vocabularies to comparisons.
    """
    dev = [f"$DATA/eval/{name}.dev.tsv.gz" for name in CORPORA]
    seen = [f"--seen $DATA/eval/{name}.train.tsv.gz" for name in CORPORA]
    return [
        *list_training(seeds, options),
        *list_comparison("mesh", dev, " ".join([ALIASES, *seen]), seeds),
        *list_significance(dev),
        *list_medic(seeds),
        Step(
            "errors.json",
            "spacy sapbert evaluate $OUT/kb-mesh-fine-tuned-0 "
            f"$DATA/eval/{CORPORA[1]}.dev.tsv.gz {ALIASES} --errors $OUT/errors.html "
            "--output $OUT/errors.json",
        ),
    ]
