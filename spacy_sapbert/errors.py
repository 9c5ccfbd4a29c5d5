"""The wording and the code of every error and warning.

Each text has the form *Expected X, but got Y.*, then how to put it right, with the
command or the setting in backticks. No message has the text of a
document or a mention; it has lines, offsets and counts instead.

Codes: E0xx files and folders, E1xx vocabularies and concepts, E2xx encoder, E3xx
knowledge base and index, E4xx component, E5xx commands, E6xx training, E7xx evaluation.
"""

from collections.abc import Sequence
from typing import Any


class SapbertError(ValueError):
    """An error of input, settings or files; the message has the fix."""


class UnknownConceptError(SapbertError, KeyError):
    """A knowledge base has no concept with an id."""

    __str__ = ValueError.__str__  # that of KeyError shows a representation


class _WithCodes(type):
    def __getattribute__(cls, code: str) -> Any:
        text = super().__getattribute__(code)
        if code.startswith("_") or not isinstance(text, str):
            return text
        return f"[{code}] {text}"


class Errors(metaclass=_WithCodes):
    # --- files and folders ---
    E001 = "Expected a file at {path}, but found none. Check the path."
    E002 = "Expected a file at {path}, but it is a folder. Name a file inside it."
    E003 = (
        "Expected to write {path}, but it exists already. Remove it, name another "
        "place, or pass `--force` (in Python `force=True`)."
    )
    E004 = (
        "Expected to write {path}, but the system refused: {reason}. Nothing was left "
        "under that name. Choose a folder with enough space that you may write to."
    )
    E006 = (
        "{path}: Expected UTF-8, but got UTF-16. Convert it with `iconv -f utf-16 -t "
        "utf-8`."
    )
    E007 = (
        "{path}:{line}: Expected lines or records of at most {bytes:,} bytes and "
        "{values:,} values, but got a larger one. Check that the file is what it "
        "should be."
    )
    E008 = (
        "{path}:{line}: Expected a whole gzip file, but it is cut or damaged after "
        "this line ({reason}). Fetch or copy the file again."
    )
    E009 = (
        "{path}:{line}: Expected UTF-8, but got another byte at offset {offset} of the "
        "line. Convert the file with `iconv -t utf-8`, or correct the line; for a "
        "table of your own pass its `--encoding`."
    )
    E010 = "Expected to read {path}, but the system refused: {reason}."
    E011 = (
        "{path}: Expected a packed file that unpacks to at most {ratio} times its "
        "size, but got more. If it is not a damaged or hostile file, unpack it, e.g. "
        "with `gunzip`, and pass the unpacked file."
    )
    E012 = (
        "Expected {path} to be {kind} or an empty folder, but {found}, which would be "
        "lost. Name another folder, or remove this one yourself."
    )
    E013 = (
        "Expected a folder with a name of its own, but got '{path}'. Write the name, "
        "for example `../models/kb`."
    )
    E020 = (
        "Expected to read or write {path}, but the system refused: {reason}. Correct "
        "its permissions, or make space for it."
    )
    E021 = (
        "Expected to write a file or folder at {path}, but it is a device, a pipe or a "
        "socket, which cannot be replaced. Name another place; a command without "
        "`--output` writes to the standard output."
    )
    E022 = (
        "Expected enough memory, but the system has none left. Close other programs, "
        "pass a smaller `--batch-size` or `--n-process`, or use a machine with more."
    )
    E023 = (
        "Expected a database that SQLite can read and write, but got: {reason}. Make "
        "space on the disk, or copy or build the knowledge base again."
    )

    # --- vocabularies and concepts ---
    E101 = (
        "{path}:{line}: Expected a concept as a JSON object with {expected}, but got "
        "something else. Correct the line, or write the file again with `spacy "
        "sapbert concepts`."
    )

    E102 = (
        "{path}:{line}: Expected {expected} fields, each ended by `|`, but got {got}. "
        "The line may be truncated, or a name may contain a `|`. Correct it, or pass "
        "`--on-error skip` to count such lines and continue."
    )
    E103 = (
        "{path}:{line}: Expected an id that matches {pattern!r}, but got {cui!r}. "
        "Correct the line, or pass the pattern of the vocabulary's ids as "
        "`--cui-pattern`."
    )
    E104 = (
        "{path}:{line}: Expected lines that are sorted by id, but got {cui} after "
        "{last}. Sort the file: "
        "`LC_ALL=C sort -t'|' -k1,1 -s`."
    )
    E105 = (
        "Expected {what} that are in {path}, but got {unknown}.{hint} The file has: "
        "{known}."
    )
    E106 = (
        "Expected at least one concept in {path}, but none is left. Dropped: "
        "{dropped}. Use fewer filters."
    )
    E107 = "Expected the part {expected} next, but got {path}. Download all parts."
    E108 = (
        "Expected {file} in {folder}, but found none. Pass the folder that contains "
        "it, or the file itself."
    )
    E109 = (
        "Expected MRSTY.RRF in the folder of {path}, because `--types` needs it, but "
        "found none. Copy it there, or remove `--types`."
    )
    E110 = (
        "Expected a file name of a known format, but got {path}. Pass `--format` with "
        "one of: {formats}."
    )
    E111 = "Expected one of the formats {formats}, but got {format!r}."
    E112 = "Expected `--on-error` to be `fail` or `skip`, but got {value!r}."
    E113 = (
        "Expected options of the format {formats}, but got `--{option}`. Remove it; "
        "`spacy sapbert concepts --help` lists the options of each format."
    )
    E114 = (
        "Expected a regular expression as `--cui-pattern`, but got {pattern!r}: "
        "{reason}."
    )
    E115 = "Expected `--{option}` to be one of {known}, but got {value!r}."
    E116 = (
        "Expected space for temporary files in {folder}, but got: {reason}. Set "
        "`TMPDIR` to a folder with more space."
    )
    E117 = (
        "{path}:{line}: Expected {expected}, but got something else. Correct the line, "
        "or pass `--on-error skip` to count such lines and continue."
    )
    E118 = (
        "{path}: Expected an OBO Graph in JSON, but {where} has: {got}. Download the "
        "file again, or pass `--on-error skip` to count bad nodes and continue."
    )
    E119 = (
        "{path}:{line}: Expected an id, `||` and names, but got something else. "
        "Correct the line, or pass `--on-error skip` to count such lines and continue."
    )

    E120 = (
        "Expected a concept with {expected}, but the concept {cui!r} is another. "
        "Correct the concept."
    )

    E121 = (
        "{path}:{line}: Expected elements that are nested at most {limit} deep, but "
        "got a deeper one. Check that this is the right file."
    )
    E122 = (
        "Expected `--cui-pattern` to match each id within {seconds:g} seconds, but "
        "{pattern!r} needs longer. Write it without a repetition in a repetition, like "
        "`(a+)+`."
    )
    E123 = (
        "Expected a concept of at most {limit:,} names and other values, but {cui!r} "
        "has more. Check that the vocabulary is what it should be."
    )
    E124 = (
        "Expected rows of MRCONSO with few different values of {columns}, but got more "
        "combinations than any release has. Check that this is the right file."
    )

    E130 = (
        "Expected concepts in {path} that are mapped to ids like {example}, but got "
        "none. Pass a vocabulary whose cross references or codes have such ids, or a "
        "file of SSSOM that maps its ids, or remove `--xrefs`."
    )

    E150 = (
        "{path}:{line}: Expected complete XML in UTF-8, but it is truncated or damaged "
        "here ({reason}). Download or copy the file again."
    )
    E151 = (
        "{path}:{line}: Expected MeSH in XML with the root element {known}, but got "
        "{got!r}. Pass a file like desc2024.xml or supp2024.xml."
    )
    E152 = (
        "{path}:{line}: Expected XML that declares no entities, but it declares or "
        "uses one. Replace each entity by its text."
    )
    E153 = (
        "{path}:{line}: Expected {expected}, but got something else in the record that "
        "begins here. Correct it, or pass `--on-error skip` to count such records and "
        "continue."
    )

    E410 = (
        "{path}:{line}: Expected a table with the columns {columns}, but got: {got}. "
        "Pass the file as its publisher released it, or another `--format`."
    )
    E411 = (
        "Expected `--encoding` to be a text encoding that Python has, but got "
        "{encoding!r}. Pass e.g. `cp1252`, `latin-1` or `utf-16`."
    )
    E412 = (
        "{path}: Expected text in {encoding}, as `--encoding` says, but got other "
        "bytes after offset {offset}. Pass the encoding in which the file was saved."
    )
    E413 = (
        "Expected `--columns` like `id=Code,name=Preferred`, with the roles {roles} "
        "and with an id and a name or synonyms, but got: {part}. Write "
        "`codes.ICD10CM=icd` for codes of a vocabulary."
    )
    E414 = (
        "Expected one column as `{role}`, but `--columns` has several. Only `synonyms` "
        "and `codes` may be repeated."
    )
    E415 = (
        "{path}:{line}: Expected names of columns in the first row that say which has "
        "the ids and which the names, but got: {got}. Name them, e.g. `--columns "
        "id=Code,name=Preferred`; in a table without names `--columns id=1,name=2`."
    )
    E416 = (
        "{path}:{line}: Expected a column {name!r}, as `--columns` says, but the "
        "columns are: {got}. Correct the option."
    )
    E417 = (
        "{path}:{line}: Expected one column {name!r}, but several have that name: "
        "{got}. Rename them, or pass the places of the columns, e.g. `--columns "
        "id=1,name=2`, without the first row."
    )
    E418 = (
        "{path}: Expected a workbook of Excel, but got: {reason}. Save it as CSV in "
        "UTF-8 and pass that file."
    )
    E420 = (
        "{path}:{line}: Expected a classification in ClaML, whose root element is "
        "`ClaML`, but got {got!r}. Pass another `--format`."
    )
    E421 = (
        "{path}: Expected an ontology as RDF/XML, Turtle or N-Triples, but it is "
        "damaged or hostile ({reason}). Download it again, or pass it as OBO or OBO "
        "Graphs."
    )
    E422 = (
        "{path}: Expected Turtle of at most {limit} MiB, which is read at once, but "
        "got more. Convert it to N-Triples, which is streamed, e.g. with `rapper -i "
        "turtle -o ntriples`."
    )
    E423 = (
        "Expected either `--output` with the file to write or `--describe`, which "
        "writes nothing, no report and no conflicts. Pass one of them."
    )
    E424 = (
        "Expected a knowledge base that may be distributed, but it has names of "
        "{reasons}. Read the terms; if they permit a wheel for all who can get it, "
        "pass `--may-distribute {names}`."
    )
    E425 = (
        "Expected {path} with the SHA-256 {expected}, but got {got}. Delete it and run "
        "`python -m spacy project assets --extra`. If its publisher has changed it, "
        "look at what is new, and correct {checksums}."
    )
    E426 = (
        "{path}:{line}: Expected a SHA-256 of 64 digits, two blanks and a path, but "
        "got something else. Correct the line."
    )
    E427 = (
        "{path}:{line}: Expected tags and comments of at most {limit} MiB, but got a "
        "larger one. Check that the file is what it should be."
    )
    E419 = (
        "{path}:{line}: Expected at most {limit:,} columns, but got more. Check that "
        "the file is a table."
    )
    E440 = (
        "Expected look-ups of the same table, knowledge base and settings in {path}, "
        "but got others. Delete the file to begin anew."
    )
    E441 = "Expected a table with an ending of {known}, but got {path}. Rename it."
    E442 = (
        "{path}: Expected at most {rows} rows in a sheet of Excel, but got more. Write "
        "CSV or Parquet."
    )
    E444 = (
        "{path}: Expected chosen ids in the column `match_chosen`, but it is empty. "
        "Write an id, or NIL, for each term that you have reviewed."
    )
    E443 = (
        "{path}: Expected a column {name!r}, but got the columns {known}. Name one of "
        "them, or write a first row with the names of the columns."
    )

    # --- service ---
    E450 = (
        "Expected `--host` to be an address of this machine alone, such as 127.0.0.1, "
        "but got {host}, which others reach. Pass `--token-file`, so that they need a "
        "token, or `--allow-remote` to serve all who reach the port."
    )
    E451 = (
        "Expected to listen on {host} port {port}, but the system refused: {reason}. "
        "Pass another `--port` (0 = any that is free) or another `--host`."
    )
    E452 = (
        "{path}: Expected a token of at least {least} letters, digits, `-`, `_` or `.` "
        "in one line, but got something else. Write one with `openssl rand -hex 32`."
    )
    E453 = (
        "Expected `Host` to be localhost or an IP address, but got another name. "
        "Start the service with `--allow-host NAME` if it is to have this name."
    )
    E454 = (
        "Expected a request of the same origin, but it comes from a page of another. "
        "Start the service with `--allow-origin` and that origin, if it is to be used "
        "by it."
    )
    E455 = (
        "Expected the token of the service, but got none or another. Send it as "
        "`Authorization: Bearer TOKEN`."
    )
    E456 = (
        "Expected a body of at most {limit:,} bytes, but got more. Send fewer texts in "
        "a request."
    )
    E457 = "Expected {expected}, but got something else. See /openapi.json."
    E458 = (
        "Expected at most {limit:,} {what} in a request, but got {got:,}. Send several "
        "requests."
    )
    E459 = (
        "Expected at most {limit} requests of a client at once, but got more. Send the "
        "next when one is answered."
    )
    E460 = (
        "Expected a service with room in its queue, but it is full or ends. Send the "
        "request again later."
    )
    E461 = (
        "Expected an answer within {seconds:g} seconds, but it took longer. Send less "
        "in a request, or the request again later."
    )
    E462 = (
        "Expected a whole body within {seconds:g} seconds, but it is still incomplete. "
        "Send the request again."
    )
    E463 = "Expected an id of the knowledge base, but got another. Use /search."
    E464 = "Expected a path and a method of /openapi.json, but got others."
    E465 = (
        "Expected the service to answer, but it failed. Report the line of its log "
        "with the same `request`."
    )
    E466 = (
        "{path}: Expected a file of reviews that can be written, but got: {reason}. "
        "Pass another `--reviews`."
    )
    E467 = (
        "Expected a service with reviews, but it has none. Start it with `--reviews "
        "FILE`."
    )
    E468 = (
        "Expected one teaching at a time, but one is running. GET /reviews/teach "
        "returns how far it is."
    )
    E469 = (
        "Expected a taught knowledge base, but there is none. Send a request to "
        "/reviews/teach first."
    )
    E490 = (
        "Expected the file of reviews at its path, but it was moved, deleted or "
        "replaced while it is open, so nothing is written. Put it back, or start the "
        "service again."
    )
    E491 = (
        "Expected to write the file of reviews, but got: {reason}. Make room on its "
        "disk or end what uses it, and send the request again."
    )

    # --- encoder ---
    E201 = "{path}: Expected the settings of an encoder, but: {reason}"
    E202 = (
        "Expected settings like {expected}, but got something else. Train or copy the "
        "encoder again."
    )
    E203 = (
        "Expected an encoder under {name!r}, but it could not be loaded: {reason} Name "
        "a folder that `save_pretrained` wrote, or a hub id with the network on."
    )

    E204 = (
        "Expected a precision of 'float32' or 'bf16', but got {precision!r}. Correct "
        "`precision` in the encoder's settings."
    )
    E205 = (
        "Expected an encoder with a fast tokenizer, but {name} has none. Save it once "
        "with `AutoTokenizer.from_pretrained(…, use_fast=True).save_pretrained(…)`."
    )
    E206 = (
        "Expected weights in {path}, in safetensors or in `pytorch_model.bin`, but "
        "found none. Copy the encoder again, or save it with `save_pretrained`."
    )

    E207 = (
        "{path}: Expected an encoder that needs no code of its own, but it has an "
        "`auto_map`. Foreign code is not run; choose another encoder."
    )

    E208 = (
        "Expected an encoder folder at {path}, but found none. Check the path, or name "
        "a hub id."
    )
    E209 = (
        "Expected an encoder of the architecture {known} for an adapter, but got "
        "{got}. Choose another base, or train all of its weights."
    )
    E210 = (
        "{path}: Expected the description of an adapter, but: {reason}. Save or copy "
        "the adapter again, or update spacy-sapbert if a newer one made it."
    )
    E211 = (
        "{path}: Expected the weights of an adapter, but: {reason} Copy the adapter "
        "again, or put it into the encoder that it was trained in."
    )
    E212 = (
        "{path}: Expected the encoder that the adapter was trained in, but: {reason} "
        "Correct `base` in this file to its folder or hub id."
    )
    E213 = (
        "Expected an encoder without an adapter, but it has one. Load the encoder that "
        "the adapter was trained in."
    )

    E220 = (
        "Expected an engine among {known}, but got {engine!r}. Correct the engine of "
        "the encoder."
    )
    E221 = (
        "Expected OpenVINO for this encoder, but it is not installed. Run "
        '`pip install "openvino>=2024.4"`, or choose the engine "torch".'
    )
    E222 = (
        "Expected an encoder exported for OpenVINO in {path}, but found none. Run "
        "`spacy sapbert kb export` on the knowledge base, or choose the engine "
        '"torch".'
    )
    E223 = (
        "{path}: Expected an encoder that OpenVINO can run, but: {reason} Export it "
        "again with the version of OpenVINO that is installed here, or choose the "
        'engine "torch".'
    )
    E224 = (
        "Expected vectors like the encoder's own from OpenVINO (cosine above {least}), "
        'but the least cosine is {cosine:.4f}. Use the engine "torch" for this '
        "encoder."
    )

    E225 = (
        "{path}: Expected an encoder that needs nothing outside of its folder, but "
        "{reason}. Save the encoder again with `save_pretrained`, or choose another "
        "one."
    )
    E226 = (
        "Expected all weights of the encoder {name}, but {count} are missing, e.g. "
        "{example}. Save the encoder again with `save_pretrained`; if its weights "
        "have a prefix such as `module.`, remove it."
    )
    E227 = (
        "Expected trained weights in the encoder {name}, but {weight} is {problem}. "
        "Train or copy the encoder again."
    )
    E228 = (
        "{path}: Expected a tokenizer that the library tokenizers can run, but "
        "{reason}. Choose another encoder, or save it again with `save_pretrained`."
    )
    E230 = (
        "Expected a `max_length` of at most {limit}, the positions of the encoder "
        "{name}, but got {got}. Correct it in sapbert.json or with `--max-length`."
    )

    E231 = (
        "Expected token states for a name of `max_length` tokens from the encoder "
        "{name}, but it failed: {reason} Lower `max_length`, or choose another encoder."
    )

    E232 = (
        "Expected token ids below {limit}, the number that the encoder has, but its "
        "tokenizer made {got}. Copy the encoder again, with its own tokenizer."
    )
    E233 = (
        "{path}: Expected pickled weights and nothing else, but it is damaged or has "
        "something else, which is not opened, as it could run code. Copy the file "
        "again, or choose an encoder with safetensors."
    )
    E234 = (
        "{path}: Expected an encoder of sentence-transformers with the parts "
        "`Transformer`, `Pooling` (cls or mean) and `Normalize`, but {reason}. Choose "
        "another encoder; or write `sapbert.json` into its folder, with `pooling`, "
        "`max_length` and `lowercase`, to run the `Transformer` alone."
    )

    # --- knowledge base and index ---
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
    E313 = (
        "Expected {setting} from {low} to {high}, but got {value!r}. Correct "
        "`{setting}`."
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
    E320 = (
        "Expected {setting} as NAME=NUMBER, but got {value!r}. Write it like `ef=200`."
    )

    E330 = "Expected a filter of {known}, but got {got}. Correct the setting `filter`."
    E331 = (
        "Expected `{setting}` to be a list of texts, but got something else. Write it "
        'like `["T047", "DISO"]`.'
    )
    E332 = (
        "Expected `{field}` to have values of the knowledge base, but it has no {got}; "
        "similar values are: {known}. Correct `{field}`."
    )
    E333 = "Expected one of the settings {known}, but got {got}. Correct its name."
    E334 = (
        "Expected `label_types` to map labels to lists of semantic types, but got a "
        '{got}. Write it like `{{"DISEASE": ["T047"]}}`.'
    )
    E335 = "Expected `{setting}` to be of {known}, but got {got}. Correct `{setting}`."
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
    E357 = (
        "Expected GPU {gpu}, but got: {reason}. Install torch with CUDA, and CuPy: "
        "the extra `gpu` for CUDA 12, else see https://docs.cupy.dev. Or leave out "
        "`--gpu-id`: the CPU builds the same knowledge base, only slower."
    )
    E358 = (
        "Expected at least one mention, but got none. Write mentions on the command "
        "line, or one a line into a file for `--file`."
    )
    E359 = (
        "Expected a list of texts as mentions, and as many labels and documents, but "
        'got {got}. Write `kb.link(["heart attack"])`, and leave out missing values.'
    )
    E360 = (
        "Expected the learned order of candidates of this version in {path}, but got: "
        "{reason}. Run `spacy sapbert teach` again."
    )
    E361 = (
        "Expected an annotated document in {path}, line {line}, but got something "
        "else. Run `spacy sapbert kb discard-edits`."
    )
    E362 = (
        "Expected annotations with ids of the knowledge base, but {unknown:,} ids, for "
        "example {example!r}, are not in it, which are nearly all. Use the vocabulary "
        "of the annotations, or change the ids with `--prefix` or `--drop-prefix`."
    )
    E364 = (
        "Expected a knowledge base without a learned order of candidates, but {path} "
        "has one, whose probability has a threshold of its own. Teach it with these "
        "mentions, or set `threshold`, a cosine, in the linker."
    )
    E363 = (
        "Expected annotated mentions, but got none in {documents} documents. Pass "
        "documents whose entities have ids."
    )
    E365 = (
        "Expected annotated mentions that bring more right answers, but these do not, "
        "so {path} was not written. Pass more of them, or `--force` to write it."
    )
    E366 = (
        "Expected `--cui` to be the id of a concept of {path}, but it has no {cui}."
        "{hint} Correct the id, or pass `--new` to add a concept with it."
    )
    E348 = (
        "Expected a version of {path}, but it has no {got!r}. It has: {known}. See "
        "`spacy sapbert kb versions {path}`."
    )
    E470 = (
        "Expected `filter.allow` to have ids of the knowledge base, but it has none of "
        "the {count:,}, e.g. {got}. Correct them, or leave out the filter."
    )
    E471 = (
        "Expected a knowledge base whose concepts have codes of OMOP for `--format "
        "omop`, but got {got}, so that each row would have the concept 0. Build it "
        "from files of Athena, or write another format."
    )
    # --- many machines ---
    E370 = (
        "Expected one column {name!r} in the documents, but they have {found}. Pass "
        "the names of their columns as `text`, `id` and `keep`."
    )
    E371 = (
        "Expected {expected} in the column {name!r}, but its type is {got}. Convert "
        "the column, or pass another as `text` or `id`."
    )
    E372 = (
        "Expected `keep` to have columns once, which the rows have not of their own, "
        "but got {got}. Correct it, or rename the column."
    )
    E373 = "Expected settings among {known}, but got {got}. Correct the name."
    E374 = (
        "Expected a document of at most {limit:,} characters, but it has {length:,}. "
        "Split it, or pass a larger `max_chars`, up to 1,000,000."
    )
    E375 = "Expected a text in UTF-8, but it has other bytes. Convert the document."
    E376 = (
        "Expected a file of a knowledge base at {path}, but it cannot be read "
        "({kind}). Check the place, the permissions, and that the library of fsspec "
        "for it is installed, e.g. s3fs."
    )
    E377 = (
        "Expected {size:,.0f} MB of room in {path} for the knowledge base, but "
        "{free:,.0f} MB are free. Pass another folder as `copy_to`, or remove copies "
        "of older versions."
    )
    E378 = (
        "Expected the id of each document to be the `note_id` of OMOP, a whole number "
        "of at most {limit:,}, but got another. Pass the column of the ids as "
        "`--id-field`."
    )
    E379 = (
        "Expected at most {limit:,} as a `note_nlp_id`, which is an integer of 32 bits "
        "in OMOP, but got more mentions. Pass a lower `--first-id`, or empty the table."
    )
    E336 = (
        "Expected the id of a concept, but the knowledge base has no {cui}. Look for "
        "it with `spacy sapbert kb search`."
    )
    E337 = (
        "Expected {cui} to have this name and at least one other, but it has not. "
        "Remove the whole concept, or correct `--alias`."
    )
    E338 = (
        "Expected {path} as it was when it was opened, but another process has changed "
        "it. Open it again and repeat the change."
    )
    E339 = (
        "Expected at least one name of {cui} that the encoder can read, but got none. "
        "Add another name."
    )
    E341 = (
        "Expected either a concepts.jsonl, or `--cui` with `--alias`, but got neither "
        "or both. Name one of them."
    )
    E340 = (
        "Expected a knowledge base with character n-grams, but it has none. Build it "
        "with `--ngrams`, or remove the setting `fusion`."
    )

    E343 = (
        "{path}: Expected an index as `spacy sapbert kb build` writes it, but "
        "{reason}. Copy or build the knowledge base again."
    )
    E344 = (
        "Expected all settings of the backend {backend}, {known}, but {missing} is "
        "missing. Copy or build the knowledge base again."
    )
    E394 = (
        "Expected to continue the build in {work}, but it is of another plan (other: "
        "{names}). Repeat the command that began it, pass `--force` to `kb build` "
        "without `--worker` to begin again, or remove the folder."
    )
    E395 = (
        "Expected a worker like 0/8, 1/8 … 7/8, but got {worker}. Count from 0, and "
        "correct `--worker`."
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
    E393 = (
        "Expected to reuse the vectors of {path}, but its {name} is another than that "
        "of the new knowledge base. Build without `--reuse`, or with the same settings."
    )
    E392 = (
        "Expected finite values in the vectors to search for, but got NaN or infinity. "
        "Remove such vectors, or correct the encoder that made them."
    )

    # --- commands ---
    E501 = "Expected a format of {known}, but got {name!r}. Correct `--format`."
    E502 = (
        "Expected a file that ends with one of {known}, but got {path}. Rename it, or "
        "choose one of {formats} with `--format`."
    )
    E503 = (
        "Expected a format that can leave the text out, but got {format}. Choose "
        "another `--format`, or remove `--no-text`."
    )
    E504 = (
        "{path}:{line}: Expected a document with {expected}, but got {got}. Correct "
        "the line, name other columns with `--text-field` and `--id-field`, or pass "
        "`--on-error skip` to count such documents and continue."
    )
    E505 = (
        "Expected documents in one of the formats {known}, but neither the ending nor "
        "the content of {path} is that of one. Pass its format as `--input-format`, or "
        "convert it."
    )
    E506 = (
        "{path}:{line}: Expected a document of at most {limit} characters, but got a "
        "longer one. Split it."
    )
    E507 = (
        "Expected a pipeline under {name!r}, but it could not be loaded: {reason} Name "
        "a folder that `nlp.to_disk` wrote, or install the package."
    )
    E508 = (
        "Expected a pipeline that detects entities, but none of its components does: "
        "{components}. Choose another `--pipeline`, or pass `--mentions names` to "
        "detect the names of the knowledge base."
    )
    E509 = (
        "Expected no `--kb`, since the linker of the pipeline, {linker}, has its own "
        "knowledge base, but got one. Remove `--kb`, or change the linker's setting "
        "`kb`."
    )
    E510 = "Expected `--mentions` to be {known!r}, but got {value!r}. Correct it."
    E570 = (
        "Expected `doc._.{attr}` to be free, but another component has registered it. "
        "Choose another name with the setting `abbreviations_attr`."
    )
    E571 = (
        "Expected a worker process to answer, but {deaths} of them with the documents "
        "{ids} did not for {seconds:.0f} seconds. Find out what stops or delays them: "
        "`--n-process 1` shows the place."
    )
    E580 = "Expected `{option}` to end with {known}, but got {path}. Correct it."
    E581 = (
        "Expected `--criterion` to be f1, accuracy or precision=NUMBER with a number "
        "above 0 and up to 1, but got {value!r}. Correct it, like "
        "`--criterion precision=0.95`."
    )
    E582 = (
        "Expected at least {fewest} annotated mentions that get an answer, but got "
        "{got}. Name more files of mentions, or raise `--limit`."
    )
    E583 = (
        "Expected right and wrong answers to {mentions} mentions, but all are {which}. "
        "Name mentions that are annotated with ids of this knowledge base, or of which "
        "it has aliases in `--aliases`."
    )
    E584 = (
        "Expected right answers to have higher scores than wrong ones, but they have "
        "not. Check that the mentions are annotated with ids of this knowledge base."
    )
    E585 = (
        "Expected a threshold with a precision of {level:g}, but the highest precision "
        "of any is {best:.4f}. Choose a lower precision, or `--criterion f1`."
    )
    E586 = (
        "Expected a knowledge base that may be changed, but {path} is installed or "
        "read-only. Copy it, like `cp -r {path} models/kb`, and name the copy."
    )
    E587 = (
        "Expected a knowledge base with a threshold to check, but {path} has none. "
        "Calibrate it with `spacy sapbert calibrate` and without `--check` first."
    )

    # --- formats: E52x written, E53x read ---
    E520 = (
        "Expected a folder as `--output`, because {format} writes files for each "
        "document, but got none. Pass one."
    )
    E521 = (
        "Expected {library} to be installed, but got: {reason}. Run "
        "`pip install {packages}`."
    )
    E522 = (
        "Expected {path} not to exist, or a folder with only `.txt` and `.ann` files, "
        "because its content is replaced, but it is {found}. Pass another path."
    )
    E523 = (
        "Expected `links` as regular expressions with addresses that begin with "
        "`https://` or `http://` and have at most one {{}} for each group, but got "
        "{pattern!r}: {address!r}. Correct it."
    )
    E530 = (
        "Expected a format that can be read, one of {known}, but got {name!r}. Pass "
        "another `format`."
    )
    E531 = (
        "{path}:{line}: Expected `entities` as a list of JSON objects with {expected}, "
        "but got something else. Correct the line, or write the file again with "
        "`spacy sapbert link … --format jsonl`."
    )
    E532 = (
        "{path}: Expected {format}, with {expected}, but document {number} has another "
        "structure. Check `format`, or export the file again."
    )

    E533 = (
        "{path}: Expected a `.spacy` file that unpacks to at most {ratio} times its "
        "size, because it is unpacked in memory, but got more. If it is not a damaged "
        "or hostile file, write the documents into several files."
    )
    E534 = (
        "{path}: Expected Docs of at most {tokens:,} tokens and {values:,} values of "
        "user data, and as many different texts as tokens, but document {number} has "
        "more. Split it, or write the file with "
        "`DocBin(store_user_data=False)`."
    )
    E535 = (
        "{path}:{line}: Expected at most {limit:,} mentions in a document, but got "
        "more. Check that the file is what it should be."
    )
    E536 = (
        "Expected documents with at most {limit:,} punctuation characters in a row, "
        "but {id!r} has {run:,}: spaCy's tokenizer would need hours. Remove them, or "
        "pass the document as a `.spacy` file, which has tokens."
    )

    E591 = (
        "{path}: Expected character n-grams of the names of this knowledge base, but "
        "{reason}. Copy or build the knowledge base again."
    )
    E592 = (
        "Expected a mask of {rows} rows of True and False, but got {got} of shape "
        "{shape}. Make it for the rows of this knowledge base."
    )
    E593 = (
        "Expected the fusion to be one of {known}, but got {value!r}. Correct `fusion`."
    )
    E594 = (
        "Expected files that end with {endings}, also with `.gz`, in {path}, but found "
        "none, without hidden files, knowledge bases and other models. Pass the format "
        "of its files as `--input-format`, or name the files."
    )
    E595 = (
        "Expected {what} in one of the formats {known}, but got {format}. Correct "
        "`--input-format`."
    )
    E596 = (
        "Expected a knowledge base in {path}, but it is a pipeline. Its knowledge base "
        "is {inside}."
    )
    E597 = (
        "{path}: Expected {what}, but {found}. Check that this is the right file, or "
        "write or copy it again."
    )
    E598 = (
        "{path}:{line}: Expected {expected} fields, as the first line has, but got "
        "{got}. Correct the quotes or fields from this line on, or pass `--on-error "
        "skip` to count such lines and continue."
    )
    E599 = (
        "{path}: Expected a column {name!r}, but found none; it has {known}. "
        "Pass the names of its columns as `--text-field` and `--id-field`, and as "
        "`--keep` those to keep."
    )
    E600 = (
        "Expected `--keep` with {expected}, but got {got}. Correct it, or remove "
        "`--keep`."
    )
    E601 = (
        "Expected `--lang` to be a language of spaCy, without `--pipeline`, but got "
        "{got}. Correct it, or remove one of the two."
    )
    E511 = "Expected the standard input, `-`, once, but got it twice. Pass it once."
    E512 = (
        "{path}: Expected documents as `DocBin.to_disk` writes them, but document "
        "{number} cannot be read ({kind}). Write or copy the file again."
    )
    E513 = (
        "Expected the pipeline to work on document {document}, but its component "
        "{component!r} failed with {kind}. Remove the document, pass `--on-error skip` "
        "to count such documents and continue, or correct the component: `nlp(text)` "
        "in Python shows the place."
    )
    E514 = (
        "Expected a folder for the parts as `--output`, but got none. Pass "
        "`--output FOLDER` with `--shard-size`."
    )
    E515 = (
        "Expected a file as `--output`, but {path} is a folder. Pass a file, or pass "
        "`--shard-size 1000` to write parts into a folder."
    )
    E516 = (
        "{path}:{line}: Expected one id, optionally followed by a tab and a comment, "
        "but got a blank in the id. Correct the line."
    )
    E518 = (
        "Expected a format with one file for each part, but {format} writes files for "
        "each document. Remove `--shard-size`."
    )
    E517 = (
        "Expected at least one id in {path}, but got none. Add one, or remove "
        "`--allow` to allow every concept."
    )
    E540 = (
        'Expected {expected}, but got {got}. Write it like `--context "No [[MI]] on '
        'the echo."`.'
    )
    E541 = (
        "Expected `--setting` as NAME=VALUE, but got something else. Write it like "
        "`--setting fusion=rrf`; a value is a text, or JSON."
    )
    E550 = (
        "Expected no other process that changes {path}, but there is one. Repeat the "
        "command when it has finished."
    )
    E551 = (
        "Expected labels in `label_types` that a config file can hold, without `:` or "
        "`=` and with a letter or digit first, but got {label!r}. Rename the label, or "
        "pass `label_types` with each call."
    )
    E552 = (
        "Expected an attribute of spans for each of CUI, candidates, note, codes and "
        "pairs, but `span._.{attr}` is {reason}. Choose another name with the settings "
        "`cui_attr`, `candidates_attr`, `note_attr`, `codes_attr` and `kb_ents_attr`."
    )
    E553 = (
        "{path}: Expected the settings of a saved component, but {reason}. Save the "
        "pipeline again."
    )
    E560 = (
        "Expected {path} to be written by this command, but it was started with "
        "another {settings}. Pass another `--output`, the old settings, or `--force`."
    )
    E561 = (
        "Expected {path} to be an empty folder, or an output of this command, but it "
        "has other files, which were not changed. Pass another `--output`."
    )
    E562 = (
        "{path}: Expected the state of an output in parts, but it cannot be read. Pass "
        "another `--output`, or remove the folder."
    )
    E563 = (
        "Expected {path} with {expected} bytes, as it was written, but {found}. "
        "Restore it, or pass `--force` to start again."
    )
    E564 = (
        "Expected the documents from which {path} was written, but the input has "
        "changed. Restore the input, or pass `--force` to start again."
    )
    E565 = (
        "Expected no other run that writes to {path}, but there is one. Wait until it "
        "has finished, or pass another `--output`."
    )
    E566 = (
        "{path}:{line}: Expected YAML, but {reason}. Correct it; quotes around the "
        "value often help."
    )
    E567 = (
        "{path}:{line}: Expected {expected}, but got {got}. Correct the case; "
        "`spacy sapbert regress --help` shows one."
    )
    E568 = "Expected at least one case in {path}, but it has none. Add one."
    E569 = (
        "Expected a file of at most {limit} bytes at {path}, but got a larger one. "
        "Split it; `spacy sapbert regress` reads several files."
    )

    # --- training ---
    E605 = (
        "Expected {setting} to be one of {known}, but got {value!r}. Correct "
        "`--{setting}`."
    )
    E619 = (
        "Expected training mentions whose ids are in the dictionary, but none of "
        "{mentions} is. Name the dictionary that they were annotated with, or "
        "`--aliases`."
    )

    # --- evaluation ---
    E634 = (
        "Expected an encoder folder or a hub id, but {name!r} is no folder, and was "
        "not found on the hub: {reason} Nor is it in the cache of the hub. Check the "
        "name and the network, or name a folder that `save_pretrained` wrote."
    )
    E635 = (
        "Expected a pooling of {known}, but got {pooling!r}. Correct `--pooling`, or "
        "`pooling` in the settings of the encoder."
    )
    E701 = (
        "{path}:{line}: Expected a header with tabs between the columns and `mention` "
        "and `ids` among them, or lines `mention||id`, but got something else. Convert "
        "the file to one of the two."
    )
    E702 = (
        "{path}:{line}: Expected `mention||id`, but the ids come first. Swap the "
        "columns: `awk -F'[|][|]' '{{print $2 \"||\" $1}}'`."
    )
    E703 = (
        "{path}:{line}: Expected {expected} fields with {separator} between them, but "
        "got {got}. Correct the line."
    )
    E704 = (
        "{path}:{line}: Expected the text of a mention, but it is blank. Correct the "
        "line, or remove it."
    )
    E705 = (
        "{path}:{line}: Expected an id, a tab and the id that it is an alias of, but "
        "got {got} fields. Correct the line."
    )
    E706 = (
        "{path}:{line}: Expected {cui} to be an alias of one id, but it is one of "
        "{first} and of {second}. Remove one of the lines."
    )
    E707 = (
        "Expected gold mentions in {path}, but it has none. Pass the file that has "
        "them."
    )
    E708 = (
        "Expected gold mentions with an id in {path}, but got none in {mentions} "
        "mentions. Name another file, or raise `--limit`."
    )
    E709 = (
        "Expected {setting} as NAME=FOLDER, each name once, but got {value!r}. Write "
        "it like `{setting} trained=models/kb`."
    )
    E740 = (
        "Expected files of different names, but got {name} twice. Rename one: results "
        "name files without their folders."
    )
    E741 = (
        "{path}:{line}: Expected a prediction as JSON with {expected}, but got "
        "something else. Make the file again with `spacy sapbert evaluate … "
        "--predictions`."
    )
    E742 = (
        "{path}:{line}: Expected one prediction for each mention, but got a second one "
        "for line {gold_line} of {file}. Make the file again with `spacy sapbert "
        "evaluate … --predictions`."
    )
    E743 = (
        "{path}:{line}: Expected a prediction for a mention that is judged, but got "
        "one for line {gold_line} of {file}. Name the gold files, `--limit` and "
        "`--distinct` that the predictions were made with."
    )
    E744 = (
        "{path}: Expected a prediction for each mention that is judged, but got none "
        "for {missing} of {mentions}, the first on line {gold_line} of {file}. Name "
        "the gold files, `--limit` and `--distinct` that the predictions were made "
        "with."
    )
    E748 = (
        "Expected a worker process to link the documents {ids}, but {deaths} of them "
        "ended over it, the last with exit code {code}. If the system had no memory "
        "left (-9), pass a smaller `--batch-size` or `--n-process`; else find the "
        "document with `--batch-size 1`."
    )
    E749 = (
        "Expected a worker process to open the pipeline and to return its documents, "
        "but it failed with {kind}. `--n-process 1` shows the place."
    )
    E712 = (
        "{path}:{line}: Expected `id|t|title`, `id|a|abstract`, or an id, start, end, "
        "mention, type and ids with tabs between them, but got {got}. Correct the line."
    )
    E713 = (
        "{path}:{line}: Expected the mention from character {start} to {end} of the "
        "text, but something else is there. Correct the offsets or the mention."
    )
    E714 = (
        "{path}:{line}: Expected two whole numbers as offsets, the start below the "
        "end, but got something else. Correct the line."
    )
    E719 = (
        "{path}:{line}: Expected an annotation, parted by tabs: {expected}; but got "
        "something else. Correct the line."
    )
    E720 = (
        "{path}:{line}: Expected the line to name a mention of {file}, but it names "
        "another. Correct the line."
    )
    E721 = (
        "{path}:{line}: Expected each annotation once, but it has the name of the one "
        "in line {first}. Rename one of them."
    )
    E730 = (
        "Expected mentions that the dictionary knows, but none of {mentions} is left. "
        "Name the dictionary that they were annotated with, or `--aliases`, or "
        "`--prefix`."
    )
    E755 = (
        "{path}:{line}: Expected the columns {columns}, but got {got}. Name the table "
        "that has them."
    )

    # --- annotated corpora: E71x, E72x ---

    E710 = (
        "Expected one of the corpus formats {known}, but got {format!r}. Correct "
        "`--format`."
    )
    E711 = (
        "Expected one of the options of the format {format} ({known}), but got "
        "`--{option}`. Remove it."
    )
    E715 = (
        "{path}:{line}: Expected `id||mention` or `id||mention||context`, but got "
        "something else. Correct the line; `--format tsv` reads `mention||id`."
    )
    E716 = (
        "{path}:{line}: Expected a context with one `<tgt>` and one `</tgt>` after it, "
        "but got something else. Correct the line."
    )
    E717 = (
        "{path}:{line}: Expected a table with tabs and closed quotes, but the quote "
        "that begins here is not closed before a tab. Correct the line."
    )
    E718 = (
        "{path}:{line}: Expected a header with tabs and the columns {wanted}, but got "
        "another. Name a file of COMETA as it was published."
    )
    E722 = (
        "Expected an output that ends with one of {known}, but got {path}. Correct "
        "`--output`."
    )
    E723 = (
        "Expected a language that spaCy can make a pipeline for, but got {lang!r}: "
        "{reason} Correct `--lang`, or install what it needs; `xx` is any language."
    )
    E724 = (
        "{path}: Expected mentions with {language!r} in the column `lang`, but got "
        "none: the languages there are {known}. Correct `--language`."
    )


class Warnings(metaclass=_WithCodes):
    """Counted problems, each one line with its count."""

    W520 = (
        "Expected documents that {format} can hold as they are, but: {losses}. Choose "
        "another format to lose nothing; docs/formats.md describes each format."
    )
    W530 = (
        "{path}: Expected mentions of whole tokens, one at a place, but of {mentions} "
        "{widened} do not begin and end with tokens and {overlapping} overlap a longer "
        "one. These are not in `doc.ents`; `doc.spans[{spans_key!r}]` has all."
    )
    W531 = (
        "Expected at most some hundred punctuation characters in a row, but document "
        "{id!r} has {run:,}. spaCy's tokenizer needs time with the square of that. If "
        "it takes too long, remove them."
    )
    W532 = (
        "{count:,} documents have more than {limit:,} punctuation characters in a row. "
        "Removing them makes reading faster."
    )
    W533 = (
        "Expected entities that do not overlap, but of {mentions} in the input "
        "{overlapping} overlap a longer one and are left out. A `--pipeline` whose "
        "linker has a `spans_key` links all."
    )
    W534 = (
        "Expected a different id for each document, but some have the id of an earlier "
        "one: {count:,}, first at {place}. The output has all documents."
    )
    W537 = (
        "Expected documents in each input file, but the file is empty: {path}. Number "
        "of empty files: {count:,}."
    )
    W600 = (
        "Expected weights in safetensors, but got the pickled weights {path}. They are "
        "read as weights alone, without running code; what is written is safetensors."
    )
    W748 = (
        "A worker process ended with exit code {code}. Another one links its documents."
    )
    W571 = (
        "A worker process did not answer for {seconds:.0f} seconds and was ended. "
        "Another one links its documents."
    )
    W553 = (
        "Expected the linkers of a pipeline to write different attributes, but "
        "{linker} and {other} both write {attrs}. The later one replaces the links of "
        "the earlier one; change `cui_attr`, `candidates_attr`, `note_attr`, "
        "`codes_attr` and `kb_ents_attr`."
    )
    W554 = (
        "The knowledge base has a new version that cannot be opened, so the old one "
        "stays in use. {reason}"
    )
    W555 = (
        "Expected `filter.{name}` to have ids of the knowledge base, but it has none "
        "of {count:,} of the {total:,}, e.g. {got}."
    )
    W556 = (
        "Expected documents with the span group {key!r}, the `spans_key` of {name}, "
        "but got none, so nothing is linked. Correct `spans_key`, or add the component "
        "that sets it before the linker."
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
    W001 = "The id {cui} was retired; the concept is now {now}."


def check_range(setting: str, value: float, low: float, high: float) -> None:
    """Raise an error if a number is not from `low` to `high`."""
    if not low <= value <= high:
        raise SapbertError(
            Errors.E313.format(setting=setting, low=low, high=high, value=value)
        )


def check_choice(setting: str, known: Sequence[Any], value: Any) -> None:
    """Raise a SapbertError if a setting has none of the known values."""
    if value not in known:
        raise SapbertError(
            Errors.E605.format(setting=setting, known=known, value=value)
        )
