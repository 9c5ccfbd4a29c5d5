"""Errors and warnings of options of linking."""


class LinkingErrors:
    E330 = "Expected a filter of {known}, but got {got}. Correct the setting `filter`."
    E331 = (
        "Expected `{setting}` to be a list of texts, but got something else. Write it "
        'like `["T047", "DISO"]`.'
    )
    E333 = "Expected one of the settings {known}, but got {got}. Correct its name."
    E334 = (
        "Expected `label_types` to map labels to lists of semantic types, but got "
        '{got}. Write it like `{{"DISEASE": ["T047"]}}`, without the labels that may '
        "have any type."
    )
    E335 = "Expected `{setting}` to be of {known}, but got {got}. Correct `{setting}`."
    E359 = (
        "Expected a list of texts as mentions, and as many labels and documents, but "
        'got {got}. Write `kb.link(["heart attack"])`, and leave out missing values.'
    )
    E593 = (
        "Expected the order to be one of {known}, but got {value!r}. Correct `--order`."
    )
