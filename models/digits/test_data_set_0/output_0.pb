
BprobabilitiesJ(ÿg/²*o¶â4¸ÿ?'dZ-ò"3¤8("@+A…6€Ò)