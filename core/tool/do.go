package tool

import (
	"context"
	"errors"
)

// Do runs a tool so that nothing of it escapes: an error, a panic and a result that is no JSON become results that say so to the model. The only error it returns holds an [AbortError]. The result of the output is never empty.
func Do(ctx context.Context, t Tool, call Call) (output Output, err error) {
	const problem = "Error running tool: "
	defer func() {
		if recover() != nil {
			output, err = Failed(problem+"it crashed"), nil
		}
	}()
	output, err = t.Run(ctx, call)
	var abort *AbortError
	switch {
	case errors.As(err, &abort):
		return Failed(problem + "the run ends"), err
	case err != nil:
		return Failed(problem + err.Error()), nil
	case output.Result == "":
		output.Result = "null"
	case !output.Result.Valid():
		return Failed(problem + "its result is not valid JSON"), nil
	}
	return output, nil
}
