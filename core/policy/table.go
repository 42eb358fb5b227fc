package policy

// row is what the tables say of one built-in tool.
type row struct {
	profile      string   // the smallest profile that holds it
	capabilities []string // nil where it is unclassified
	risky        bool
}

// builtIn is the table of the built-in tools. agents_list and agents_route are reserved: no tool bears these names.
var builtIn = map[string]row{
	"agents_list":       {Minimal, []string{"agent.read"}, false},
	"agents_route":      {Minimal, []string{"agent.dispatch"}, false},
	"artifact_create":   {Minimal, []string{"artifact.write"}, false},
	"artifact_append":   {Minimal, []string{"artifact.write"}, false},
	"artifact_validate": {Minimal, []string{"artifact.read"}, false},
	"artifact_finalize": {Minimal, []string{"artifact.write"}, false},
	"artifact_deliver":  {Minimal, []string{"artifact.read", "message.send"}, false},
	"clarify":           {Minimal, []string{"message.ask"}, false},
	"knowledge_search":  {Minimal, []string{"knowledge.read"}, false},
	"list_dir":          {Minimal, []string{"fs.read"}, false},
	"message":           {Minimal, []string{"message.send"}, false},
	"notify":            {Minimal, []string{"message.send"}, false},
	"read_file":         {Minimal, []string{"fs.read"}, false},
	"read_spill":        {Minimal, []string{"fs.read"}, false},
	"search_files":      {Minimal, []string{"fs.read"}, false},
	"session_search":    {Minimal, []string{"session.read"}, false},
	"skill_view":        {Minimal, []string{"skill.read"}, false},
	"skills_list":       {Minimal, []string{"skill.read"}, false},
	"todo":              {Minimal, []string{"task.write"}, false},
	"image_generate":    {Messaging, []string{"media.generate", "network.outbound"}, false},
	"memory":            {Messaging, []string{"memory.read", "memory.write"}, false},
	"text_to_speech":    {Messaging, []string{"media.generate", "network.outbound"}, false},
	"vision_analyze":    {Messaging, []string{"media.read"}, false},
	"edit_file":         {Coding, []string{"fs.read", "fs.write"}, false},
	"knowledge_index":   {Coding, []string{"knowledge.write", "fs.read"}, false},
	"patch":             {Coding, []string{"fs.read", "fs.write"}, false},
	"task":              {Coding, []string{"task.write"}, false},
	"workflow":          {Coding, []string{"workflow.write"}, false},
	"write_file":        {Coding, []string{"fs.write"}, false},
	"browser":           {Full, nil, false},
	"cronjob":           {Full, []string{"scheduler.write"}, true},
	"delegate_task":     {Full, nil, false},
	"exec":              {Full, []string{"process.exec"}, true},
	"execute_code":      {Full, []string{"code.exec", "process.exec"}, true},
	"process":           {Full, []string{"process.exec", "process.manage"}, true},
	"read_document":     {Full, nil, false},
	"send_file":         {Full, []string{"fs.read", "message.send"}, false},
	"skill_install":     {Full, []string{"skill.install", "network.outbound", "fs.write"}, true},
	"skill_manage":      {Full, []string{"skill.write", "fs.write"}, true},
	"skill_run":         {Full, nil, false},
	"spawn_task":        {Full, nil, false},
	"web_fetch":         {Full, []string{"network.outbound"}, false},
	"web_search":        {Full, []string{"network.outbound"}, false},
}

// denial is what a security profile denies.
type denial struct{ names, capabilities []string }

var denials = map[string]denial{
	Daemon: {
		names:        []string{"exec", "execute_code", "process", "skill_install"},
		capabilities: []string{"code.exec", "process.exec", "process.manage", "skill.install"},
	},
	PublicGateway: {
		names:        []string{"cronjob", "edit_file", "exec", "execute_code", "knowledge_index", "patch", "process", "skill_install", "skill_manage", "workflow", "write_file"},
		capabilities: []string{"code.exec", "fs.write", "process.exec", "process.manage", "scheduler.write", "skill.install", "skill.write", "workflow.write"},
	},
}
