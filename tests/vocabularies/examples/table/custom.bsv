// our words
C9000001|T184|azure fever|Blue fever
C9000001|T184|5" fever|Blue fever
