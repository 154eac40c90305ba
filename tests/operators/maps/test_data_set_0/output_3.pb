2
versicolor2
versicolor2
versicolor2
versicolorBo3