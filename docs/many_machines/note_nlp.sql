-- The rows of note_nlp (OMOP CDM 5.4) of the table `linked`, for Spark SQL.
-- link = LinkBatches(kb=…, text="note_text", id="note_id", keep=["note_text"])
SELECT
  -- To add rows to a table, add its greatest note_nlp_id.
  row_number() OVER (ORDER BY cast(id AS bigint), start, end) AS note_nlp_id,
  cast(id AS bigint) AS note_id,
  cast(NULL AS int) AS section_concept_id,
  translate(substring(note_text, greatest(start - 79, 1), 250), '\r\n', '  ') AS snippet,
  cast(start AS string) AS offset,
  translate(substring(text, 1, 250), '\r\n', '  ') AS lexical_variant,
  coalesce(cast(get(codes['OMOP'], 0) AS int), 0) AS note_nlp_concept_id,
  0 AS note_nlp_source_concept_id,
  concat('spacy-sapbert ', package_version) AS nlp_system,
  current_date() AS nlp_date,
  current_timestamp() AS nlp_datetime,
  cast(NULL AS string) AS term_exists,
  cast(NULL AS string) AS term_temporal,
  concat_ws(
    ',', concat('cui=', cui), concat('score=', score), concat('probability=', probability)
  ) AS term_modifiers
FROM linked
WHERE error IS NULL
