C9000001|azure fever
C9000002|blue cough
