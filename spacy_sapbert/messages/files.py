"""Errors and warnings of files, folders, options of any kind."""


class FilesErrors:
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
        "line. Pass its `--encoding` if the command has this option; else convert the "
        "file, e.g. with `iconv -f latin1 -t utf-8`, or correct the line."
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
        "Expected a path with a name of its own, but got '{path}'. Write the name, "
        "for example `../models/kb`."
    )
    E014 = (
        "Expected to write outside of {parent}, whose files must not change, but got "
        "{path}. Name another place."
    )
    E015 = (
        "Expected outputs in different places, but {path} and {other} are one place, "
        "or one is inside of the other. Name another place for one of them."
    )
    E016 = (
        "Expected to write {path}, but {other}, which is read, would be lost. Name "
        "another place."
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
    E024 = (
        "Expected the command to end by itself, but got {kind} at {place}. Its message "
        "is left out, since it may quote a document. Report the lines above to the "
        "authors of the package that has this file."
    )
    E025 = (
        "Expected names of files and values on the command line in UTF-8, but one has "
        "other bytes. Rename the file, or type the value again."
    )
    E116 = (
        "Expected space for temporary files in {folder}, but got: {reason}. Set "
        "`TMPDIR` to a folder with more space."
    )
    E150 = (
        "{path}:{line}: Expected complete XML in UTF-8, but it is truncated or damaged "
        "here ({reason}). Download or copy the file again."
    )
    E152 = (
        "{path}:{line}: Expected XML that declares no entities, but it declares or "
        "uses one. Replace each entity by its text."
    )
    E313 = (
        "Expected {setting} from {low} to {high}, but got {value!r}. Correct "
        "`{setting}`."
    )
    E427 = (
        "{path}:{line}: Expected tags and comments of at most {limit} MiB, but got a "
        "larger one. Check that the file is what it should be."
    )
    E605 = (
        "Expected {setting} to be one of {known}, but got {value!r}. Correct "
        "`--{setting}`."
    )


class FilesWarnings:
    W024 = (
        "Expected the entry point {name!r} of {group} to name a {kind} in {value}, but "
        "it is left out: {reason}. Correct or uninstall its package."
    )
