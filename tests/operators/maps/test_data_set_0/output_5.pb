
o52G
o5"setosa"
versicolor"	virginica* JfÖ†=J”M?JD>2G
o5"setosa"
versicolor"	virginica* JwR(>JeC?Jž2”=2G
o5"setosa"
versicolor"	virginica* JYùÂ=JT¯@?JÆ>2G
o5"setosa"
versicolor"	virginica* J=M+>J­ò>J³@¸>