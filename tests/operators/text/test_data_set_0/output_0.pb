2the Quick brown end2x2
fox  jumps2über den Zaun !2a,b,,cé2user@mail.comthe Quick brownBo0