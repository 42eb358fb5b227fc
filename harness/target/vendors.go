package target

import (
	"net/url"
	"slices"
	"strings"
)

// Vendor is a vendor of models that a program may ask through the recorder.
type Vendor struct {
	// Name is that of --upstream and of prices.
	Name string
	// Base is the address that stands in cassettes and is dialled; "" where the target must name it under proxy.
	Base string
	// Variables point a program at the recorder, Keys hold its credentials.
	Variables, Keys []string
	// Refused says why requests cannot be passed on; "" for those that can.
	Refused string
}

// Vendors is the table of vendors. A further one is a further row.
var Vendors = []Vendor{
	{Name: "openai", Base: "https://api.openai.com/v1", Variables: []string{"OPENAI_BASE_URL", "OPENAI_API_BASE"}, Keys: []string{"OPENAI_API_KEY"}},
	{Name: "anthropic", Base: "https://api.anthropic.com", Variables: []string{"ANTHROPIC_BASE_URL"}, Keys: []string{"ANTHROPIC_API_KEY"}},
	{Name: "gemini", Base: "https://generativelanguage.googleapis.com", Variables: []string{"GOOGLE_GEMINI_BASE_URL"}, Keys: []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}},
	{Name: "azure", Variables: []string{"AZURE_OPENAI_ENDPOINT"}, Keys: []string{"AZURE_OPENAI_API_KEY"}},
	{Name: "bedrock", Base: "https://bedrock-runtime.us-east-1.amazonaws.com", Variables: []string{"AWS_ENDPOINT_URL_BEDROCK_RUNTIME"}, Refused: "requests to Bedrock would have to be signed anew, which this version does not do"},
}

// VendorNamed returns the vendor of a name, nil where there is none.
func VendorNamed(name string) *Vendor {
	if i := slices.IndexFunc(Vendors, func(v Vendor) bool { return v.Name == name }); i >= 0 {
		return &Vendors[i]
	}
	return nil
}

// fixed are the variables of a target beside those of vendors.
var fixed = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "ECHOEVAL_MODE", "ECHOEVAL_NOW", "ECHOEVAL_SEED", "ECHOEVAL_URL"}

// Variables are the names of all environment variables that the recorder sets, sorted.
func Variables() []string {
	all := slices.Clone(fixed)
	for _, v := range Vendors {
		all = append(all, v.Variables...)
		all = append(all, v.Keys...)
	}
	slices.Sort(all)
	return all
}

// Service is an address behind the recorder.
type Service struct {
	// Name is the vendor's, or the variable of another service.
	Name string
	// Base is the address as the cassette knows it.
	Base string
	// Model says that models are asked there.
	Model bool
}

// Services are the addresses that a program of that spec can reach through its recorder, the vendors first, in the order of the table, then its own by name.
func (s *Spec) Services() []Service {
	var all []Service
	for _, v := range Vendors {
		base := v.Base
		if s.Bases[v.Name] != "" {
			base = s.Bases[v.Name]
		}
		for _, name := range v.Variables {
			if s.Proxy[name] != "" {
				base = s.Proxy[name]
			}
		}
		if base != "" && v.Refused == "" {
			all = append(all, Service{Name: v.Name, Base: base, Model: true})
		}
	}
	var own []Service
	for name, base := range s.Proxy {
		if !ofVendor(name) {
			own = append(own, Service{Name: name, Base: base})
		}
	}
	slices.SortFunc(own, func(a, b Service) int { return strings.Compare(a.Name, b.Name) })
	return append(all, own...)
}

func ofVendor(variable string) bool {
	return slices.ContainsFunc(Vendors, func(v Vendor) bool { return slices.Contains(v.Variables, variable) })
}

// route is where requests below a path of the recorder go.
type route struct {
	service Service
	base    *url.URL
	prefix  string // of the recorder's path
	refused string
}

// routes are the paths of the recorder of a program.
func (s *Spec) routes() []route {
	var all []route
	services := s.Services()
	for _, v := range Vendors {
		r := route{service: Service{Name: v.Name, Model: true}, prefix: "/" + v.Name, refused: v.Refused}
		if i := slices.IndexFunc(services, func(x Service) bool { return x.Name == v.Name }); i >= 0 {
			r.service = services[i]
		} else if r.refused == "" {
			r.refused = "the address of " + v.Name + " differs from customer to customer: name it, proxy: {" + v.Variables[0] + ": \"https://...\"}"
		}
		all = append(all, r)
	}
	for _, x := range services {
		if !x.Model {
			all = append(all, route{service: x, prefix: "/-/" + x.Name})
		}
	}
	for i := range all {
		if u, err := url.Parse(all[i].service.Base); err == nil {
			all[i].base = u
		}
	}
	return all
}
