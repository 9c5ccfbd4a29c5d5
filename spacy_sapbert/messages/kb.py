"""Errors and warnings of a knowledge base and its index."""


class KbErrors:
    E222 = (
        "Expected an encoder exported for OpenVINO in {path}, but found none. Run "
        "`spacy sapbert kb export` on the knowledge base, or choose the engine "
        '"torch".'
    )
    E301 = (
        "Expected queries of width {width}, as the index has, but got {got}. Encode "
        "them with the encoder of the same knowledge base."
    )
    E302 = (
        "Expected the backend to be one of {known}, but got {backend!r}. Correct "
        "`--backend`, or update spacy-sapbert if a newer one made the knowledge base."
    )
    E303 = (
        "Expected a knowledge base in {path}, but found no CURRENT. Build one with "
        "`spacy sapbert kb build concepts.jsonl {path} --encoder …`."
    )
    E304 = (
        "{path}: Expected the description of a knowledge base, but {reason}. Build or "
        "copy the knowledge base again."
    )
    E305 = (
        "Expected a knowledge base of format {expected}, but {path} has {got}. Build a "
        "new folder, `spacy sapbert kb build concepts.jsonl NEW --encoder …`, and "
        "remove the old one."
    )
    E306 = (
        "Expected {path} as it was when the knowledge base was built, but {reason}. "
        "Copy or build the knowledge base again."
    )
    E307 = (
        "Expected the index and the encoder of one knowledge base, but the encoder "
        "gives vectors of width {got} and the index holds width {width}. Build the "
        "knowledge base again with this encoder."
    )
    E308 = (
        "Expected a knowledge base, but none is named and none is installed. Name a "
        "folder with the setting `kb`, install a knowledge base package with `pip "
        "install`, or build one with `spacy sapbert kb build`."
    )
    E309 = (
        "Expected one installed knowledge base, but found {names}. Choose one with the "
        "setting `kb`."
    )
    E310 = (
        "Expected a folder or an installed knowledge base under {name!r}, but found "
        "neither; installed are: {names}. Correct the setting `kb`."
    )
    E311 = (
        "Expected at least one name that the encoder can read, but got none in "
        "{concepts} concepts. Check the vocabulary, or choose an encoder that was "
        "trained on its script."
    )
    E312 = (
        "Expected each concept once, but {cui} comes twice. Unite the vocabularies "
        "with `spacy sapbert concepts`."
    )
    E314 = (
        "Expected settings that the index {backend} has ({known}), but got "
        "{unknown!r}. Correct it, or leave it out."
    )
    E315 = (
        "Expected finite vectors from the encoder, but some are not. Try another "
        "encoder, or `--precision float32`."
    )
    E316 = (
        "Expected a name of small letters, digits and underscores for the package, but "
        "got {name!r}. Correct `--name`."
    )
    E317 = "Expected a version like 0.1.0, but got {version!r}. Correct `--version`."
    E318 = (
        "Expected `python -m build` to make a wheel, but it failed: {reason}. Install "
        "what it needs with `pip install build 'setuptools>=70.1'`."
    )
    E319 = (
        "Expected the index to find the rows of its own vectors, but it found {found} "
        "of {total}. Build the knowledge base again, with a larger `ef` or `M`."
    )
    E332 = (
        "Expected `{field}` to have values of the knowledge base (most similar: "
        "{known}), but got {got}. Correct `{field}`."
    )
    E336 = (
        "Expected the id of a concept, but the knowledge base has no {cui}. Look for "
        "it with `spacy sapbert kb search`."
    )
    E337 = (
        "Expected {cui} to have another name besides this one, but it has none. Remove "
        "the whole concept, without `--alias`."
    )
    E338 = (
        "Expected {path} as it was when it was opened, but another process has changed "
        "it. Open it again and repeat the change."
    )
    E339 = (
        "Expected at least one name of {cui} that the encoder can read, but got none. "
        "Add another name."
    )
    E340 = (
        "Expected a knowledge base with character 3-grams, but it has none. Build it "
        "with `--order names`."
    )
    E343 = (
        "{path}: Expected an index as `spacy sapbert kb build` writes it, but "
        "{reason}. Copy or build the knowledge base again."
    )
    E344 = (
        "Expected all settings of the backend {backend}, {known}, but {missing} is "
        "missing. Copy or build the knowledge base again."
    )
    E348 = (
        "Expected a version of {path}, but it has no {got!r}. It has: {known}. See "
        "`spacy sapbert kb versions {path}`."
    )
    E349 = (
        "{path}: Expected a whole database of concepts, but {reason}. Copy or build "
        "the knowledge base again."
    )
    E350 = (
        "Expected no other build of {path}, but one is running in {work}, or workers "
        "of one. Wait until they have finished, or name another folder."
    )
    E351 = (
        "Expected the knowledge base with the digest {expected}, but {path} has the "
        "digest {got}. Install the one that is pinned, or pin this one if you trust "
        "it."
    )
    E352 = (
        "Expected rows from 0 to below {rows}, but got others. If they come from the "
        "knowledge base itself, build or copy it again."
    )
    E353 = (
        "Expected names to find their concepts, but {found} of {total} do. The index "
        "or the encoder belongs to other names. Build the knowledge base again."
    )
    E354 = (
        "{path}: Expected lists of names by concept, but got something else. Remove "
        "all edits with `spacy sapbert kb discard-edits {kb}`."
    )
    E355 = (
        "Expected to write a knowledge base that works to {path}, but: {reason} "
        "Nothing was replaced. If the disk is full, make space, and repeat the command."
    )
    E356 = (
        "Expected a setting of the index {backend} that can change without a new build "
        "({known}), but got {name}. Build the knowledge base again with `--setting "
        "{name}=…`."
    )
    E361 = (
        "Expected an annotated document in {path}, line {line}, but got something "
        "else. Run `spacy sapbert kb discard-edits`."
    )
    E367 = (
        "Expected {cui} to have the name of `--alias`, but its names are {names}. "
        "Correct the name."
    )
    E368 = (
        "Expected a knowledge base, but {path} is a version of {parent}. Pass "
        "{parent}; `spacy sapbert kb use` chooses the version."
    )
    E369 = (
        "Expected the installed knowledge base {name!r} ({value}) to name its folder, "
        "but: {reason}. Install its package again, or name a folder."
    )
    E362 = (
        "Expected annotations with ids of the knowledge base, but {unknown:,} ids, for "
        "example {example!r}, are not in it, which are nearly all. Use the vocabulary "
        "of the annotations, or change the ids with `--prefix` or `--drop-prefix`."
    )
    E363 = (
        "Expected annotated mentions, but got none in {documents} documents. Pass "
        "documents whose entities have ids."
    )
    E364 = (
        "Expected a knowledge base without a learned order of candidates, but {path} "
        "has one, whose probability has a threshold of its own. Teach it with these "
        "mentions, or set `threshold`, a cosine, in the linker."
    )
    E390 = (
        "Expected the library {library}, which searches this index, but it is not "
        "installed. Run `pip install {package}`, or build the knowledge base again "
        "with `--backend` one of {usable}."
    )
    E391 = (
        "{path}: Expected unit vectors, but row {row} has none: the file is damaged. "
        "Copy or build the knowledge base again; `spacy sapbert kb verify` checks all "
        "of it."
    )
    E392 = (
        "Expected finite values in the vectors to search for, but got NaN or infinity. "
        "Remove such vectors, or correct the encoder that made them."
    )
    E393 = (
        "Expected to reuse the vectors of {path}, but its {name} is another than that "
        "of the new knowledge base. Build without `--reuse`, or with the same settings."
    )
    E394 = (
        "Expected to continue the build in {work}, but it is of another plan (other: "
        "{names}). Repeat the command that began it, pass `--force` to `kb build` "
        "to begin again, or remove the folder."
    )
    E424 = (
        "Expected a knowledge base that may be distributed, but it has names of "
        "{reasons}. Read the terms; if they permit a wheel for all who can get it, "
        "pass `--may-distribute {names}`."
    )
    E470 = (
        "Expected `filter.allow` to have ids of the knowledge base, but it has none of "
        "the {count:,}. Correct them, or leave out the filter."
    )
    E550 = (
        "Expected no other process that changes {path}, but there is one. Repeat the "
        "command when it has finished."
    )
    E591 = (
        "{path}: Expected character n-grams of the names of this knowledge base, but "
        "{reason}. Copy or build the knowledge base again."
    )
    E592 = (
        "Expected a mask of {rows} rows of True and False, but got {got} of shape "
        "{shape}. Make it for the rows of this knowledge base."
    )
    E596 = (
        "Expected a knowledge base in {path}, but it is a pipeline. Its knowledge base "
        "is {inside}."
    )


class KbWarnings:
    W001 = "The id {cui} was retired; the concept is now {now}."
    W555 = (
        "Expected `filter.{name}` to have ids of the knowledge base, but it has none "
        "of {count:,} of the {total:,}, e.g. {got}."
    )
    W557 = (
        "Expected a disk with locks for {path}, but got: {reason}. Do not change this "
        "knowledge base by two processes at once."
    )
    W558 = (
        "Expected faiss for the index of {rows:,} names, but it is not installed. The "
        "index is hnsw with shorter vectors, which needs more memory and finds fewer "
        "nearest names. For faiss, stop, `pip install faiss-cpu` and build again."
    )
