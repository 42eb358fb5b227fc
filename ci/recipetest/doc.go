// Package recipetest runs the CI recipes as far as that goes without their hosts: the files are read strictly, and their scripts run with the variables of the host, against the built command and the committed datasets.
package recipetest
