"""What every reader does to a name, so that one rule holds in all the formats."""


def clean_name(text: str) -> str:
    """Strip a name, and make one space of each run of white space in it.

    Tabs, carriage returns, U+0085, U+2028 and no-break spaces are white space; case
    and Unicode form stay as they are, and so do zero-width and right-to-left marks.

    text (str): The name as the file has it.
    RETURNS (str): The name; it may be empty.
    """
    return " ".join(text.split())


def has_letter_or_digit(name: str) -> bool:
    """Return whether a name says anything: one letter or digit, of any script.

    name (str): A cleaned name.
    RETURNS (bool): False for an empty name and for one of signs alone.
    """
    return name[:1].isalnum() or any(map(str.isalnum, name))
