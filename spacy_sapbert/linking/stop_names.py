"""Names of vocabularies that are common words in clinical texts, by language.

`sapbert_mentions` does not mark them; its attribute `stop_names` can be changed.
"""

ENGLISH = """
abnormal absent activity acute admission admitted adult adults age all analysis answer
area assessment associated average baseline better bilateral brother care case cases
cause caused causes change changed changes child children chronic class clinic clinical
cohort complaint complaints complete complication complications condition conditions
control controls course daily data date daughter day days decrease decreased deficiency
degree detected diagnosis diagnostic discharge discharged disease diseases disorder
disorders doctor dosage dose doses due duration early effect effects elevated emergency
evaluation event events evidence examination exam experiment experimental factor factors
family father female finding findings first follow-up form forms frequency friend full
function further general genetic good grade group groups growth high history home
hospital hour hours house husband identified impression improved improvement included
including increase increased increasing indicated indication induced inpatient interval
introduction investigation knowledge known laboratory large late lateral left level
levels life limited location long lot lower male management manner man maximum measure
measurement measures medial medical medication medications medicine men methods mild
minimal minimum minute minutes model moderate month months mother name negative nephew
new niece night none normal note number nurse observation observed office old onset
other outcome outcomes outpatient output parents part partial patient patients pattern
performed period person phase physician place plan point population position positive
possible practice present presentation prevention previous primary prior probable
problem problems procedure procedures process prognosis protocol quality question
questions rate rates reason recent recommendation reduced reduction referral refused
region related relationship report reports research response result results review
right risk risks role sample scale score second secondary section service services
severe severity side significant sign signs similar simple single sister site size small
social son stable stage standard start state status strain strains study
studies subject subjects sudden support symptom symptoms syndrome syndromes system
systems table team technique test tests therapy time title today total transfer
transferred treated treatment treatments trial trials type types unchanged unknown
upper use used using value values visit volume week weeks weight well wife woman women
work worse year years young
"""

STOP_NAMES = {"en": frozenset(ENGLISH.split())}
