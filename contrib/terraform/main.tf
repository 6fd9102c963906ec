# An app of Sluice from Terraform: a stack of CloudFormation with one resource.
variable "service_token" {
  description = "The output ServiceToken of the stack of contrib/cloudformation/provider.yaml."
  type        = string
}

resource "aws_cloudformation_stack" "shop" {
  name = "sluice-shop"
  template_body = jsonencode({
    Resources = {
      Shop = {
        Type = "Custom::SluiceApp"
        Properties = {
          ServiceToken = var.service_token
          Namespace    = "demo"
          App          = "shop"
          Document     = file("${path.module}/app.yaml")
        }
      }
    }
    Outputs = { Plan = { Value = { "Fn::GetAtt" = ["Shop", "Plan"] } } }
  })
}

output "plan" {
  value = aws_cloudformation_stack.shop.outputs["Plan"]
}
