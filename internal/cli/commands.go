package cli

import "github.com/spf13/cobra"

// commands lists all commands of the first level.
func (a *app) commands() []*cobra.Command {
	return []*cobra.Command{
		a.demoCommand(),
		a.runCommand(),
		a.initCommand(),
		a.configCommand(),
		a.issueCommand(),
		a.changeCommand(),
		a.runsCommand(),
		a.showCommand(),
		a.explainCommand(),
		a.watchCommand(),
		a.retryCommand(),
		a.logsCommand(),
		a.cancelCommand(),
		a.stateCommand(),
		a.workspaceCommand(),
		a.claimCommand(),
		a.doctorCommand(),
		a.manCommand(),
		a.versionCommand(),
	}
}
