"""
Made: the knowledge base models/sample/kb, of our own vocabulary of 248 concepts.

Next:
- Link a text: the ten lines of README.md, or
  spacy sapbert link models/sample/kb assets/sample/notes --output notes.html
- Open results/sample/notes.html in a browser, if you ran the demo: linked notes.
- Your vocabulary, or UMLS: docs/vocabularies.md. Without a licence:
  python -m spacy project assets && python -m spacy project run open
- A better encoder: --encoder cambridgeltl/SapBERT-from-PubMedBERT-fulltext, of the
  Hugging Face hub; docs/knowledge_base.md.
"""

import sys

sys.stdout.write(str(__doc__))
